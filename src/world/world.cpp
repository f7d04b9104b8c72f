#include "outcore/world.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "device/buffer.hpp"
#include "gpc/service.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"
#include "outcore/scratch.hpp"
#include "transport/host.hpp"
#include "world/gate.hpp"
#include "world/memory.hpp"
#include "world/pool.hpp"
#include "world/users.hpp"

namespace outcore {
namespace {

bool own_node(const WorldOptions& options) {
  const char* wanted = std::getenv("OUTCORE_NODES");
  if (!wanted || !*wanted || std::strcmp(wanted, "hosts") == 0) return options.node_for_each_process;
  if (std::strcmp(wanted, "processes") == 0) return true;
  throw Error(EINVAL, {.attempted = "OUTCORE_NODES=" + std::string(wanted),
                       .detail = "it is 'hosts' or 'processes'"});
}

}  // namespace

struct World::State {
  /// The number of calls of all threads, for which `close` waits, and the bit `closing`.
  std::atomic<std::uint32_t> uses = 0;
  static constexpr std::uint32_t closing = 1u << 31;
  std::unique_ptr<transport::Transport> transport, node_transport;
  int rank = 0, size = 1, node = 0, node_count = 1, node_rank = 0, node_size = 1;
  std::shared_ptr<Budget> budget;
  std::optional<std::string> scratch;  // null: not chosen yet
  WorldOptions options;                // for its parts
  std::unique_ptr<world::Pool> pool;
  std::uint64_t regions = 0;  // number ever allocated
  std::shared_ptr<World::Companion> companion;
  std::unique_ptr<gpc::Service> service;  // from the first procedure on

  std::mutex users_mutex;
  std::vector<std::weak_ptr<world::User>> all_users;

  std::vector<std::weak_ptr<world::User>> users() {
    const std::lock_guard lock(users_mutex);
    return all_users;
  }
  transport::Transport& open() const {
    if (!transport) throw Error(EBADF, {.attempted = "use a world", .detail = "it was closed"});
    return *transport;
  }
};

/// A call of a thread that uses resources that `close` frees.
class World::InUse {
 public:
  explicit InUse(State& state) : state_(state) {
    if (state_.uses.fetch_add(1) < State::closing) return;
    end();
    throw Error(EBADF, {.attempted = "use a world", .detail = "it was closed"});
  }
  ~InUse() { end(); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  void end() noexcept {
    if (--state_.uses == State::closing) state_.uses.notify_all();
  }

  State& state_;
};

World World::job(const WorldOptions& options) {
  return World(transport::job(), options);
}

World World::self(const WorldOptions& options) {
  return World(transport::self(), options);
}

World World::mpi(int fortran_communicator, const WorldOptions& options) {
  return World(transport::mpi(fortran_communicator), options);
}

World::World(std::unique_ptr<transport::Transport> given, const WorldOptions& options)
    : World(std::move(given), [&] { return options; }) {}

World::World(std::unique_ptr<transport::Transport> given, const Make& make)
    : state_(std::make_unique<State>(), "use a world") {
  State& state = *state_;
  state.transport = std::move(given);
  transport::Transport& transport = *state.transport;
  state.rank = transport.rank();
  state.size = transport.size();
  WorldOptions options;
  bool each_its_own = false;
  std::string node;
  enter("World", [&]() -> std::uint64_t {
    options = make();
    each_its_own = own_node(options);
    const std::string host = transport.host();
    node = each_its_own ? "#" + std::to_string(state.rank) : host;
    if (!options.scratch.empty()) state.scratch = device::checked_scratch(options.scratch);
    if (options.memory_bytes < 0)
      throw Error(EINVAL,
                  {.attempted = "memory budget of " + std::to_string(options.memory_bytes) + " bytes"});
    return 0;  // they may differ
  });
  const auto nodes = transport::numbers_of_names(transport, node);
  state.node = nodes[static_cast<std::size_t>(state.rank)];
  state.node_count = 1 + *std::max_element(nodes.begin(), nodes.end());
  state.node_transport = transport.split(state.node, state.rank);
  state.node_rank = state.node_transport->rank();
  state.node_size = state.node_transport->size();
  state.budget = options.budget;
  if (!state.budget) state.budget = world::make_budget(options.memory_bytes, state.node_size);
  device::limit_pool(state.budget->limit_bytes());
  state.options = {.scratch = options.scratch, .node_for_each_process = each_its_own, .budget = state.budget};
  state.pool = std::make_unique<world::Pool>(transport, state.node_count == 1);
}

World::World(std::unique_ptr<transport::Transport> part, World& whole, const std::string& scratch)
    : World(std::move(part), [&] {
        WorldOptions options = whole.state_->options;
        if (!scratch.empty()) options.scratch = scratch;
        return options;
      }()) {}

std::unique_ptr<transport::Transport> World::split_transport(int color, int key) {
  together("split", 0, [] {});
  return state_->transport->split(color, key);
}

std::unique_ptr<World> World::split(int color, int key, const std::string& scratch) {
  auto part = split_transport(color, key);
  return part ? std::make_unique<World>(std::move(part), *this, scratch) : nullptr;
}

World::~World() {
  try {
    close();
  } catch (const Error&) {  // another process has failed; the rest is freed without it
  }
}

void World::close() {
  if (!state_.here() || closed()) return;
  std::exception_ptr failure;
  try {
    if (state_->companion) state_->companion->closing();
    flush();
    if (state_->service) state_->service->finish();
    while (!world::enter_to_close(*state_->transport)) {
    }
  } catch (const Error& error) {
    // If the transport has ended, there is nothing to free, and no process to wait for.
    if (error.errno_value() != ESHUTDOWN) failure = std::current_exception();
  } catch (...) {
    // Data of a process that a signal has interrupted in the middle of a call is meaningless.
    failure = std::current_exception();
  }
  state_->companion.reset();  // because it may still use the other members
  for (const auto& each : state_->users())
    if (const auto user = each.lock()) user->finish();
  state_->uses.fetch_or(State::closing);
  for (std::uint32_t uses; (uses = state_->uses.load()) != State::closing;) state_->uses.wait(uses);
  state_->service.reset();
  state_->pool.reset();
  state_->node_transport.reset();
  state_->transport.reset();
  if (failure) std::rethrow_exception(failure);
}

bool World::closed() const noexcept {
  return !state_.get()->transport;
}

int World::rank() const noexcept {
  return state_.get()->rank;
}
int World::size() const noexcept {
  return state_.get()->size;
}
int World::node() const noexcept {
  return state_.get()->node;
}
int World::node_count() const noexcept {
  return state_.get()->node_count;
}
int World::node_rank() const noexcept {
  return state_.get()->node_rank;
}
int World::node_size() const noexcept {
  return state_.get()->node_size;
}
transport::Transport& World::transport() {
  return state_->open();
}
transport::Transport& World::node_transport() {
  (void)state_->open();
  return *state_->node_transport;
}
Budget& World::budget() noexcept {
  return *state_.get()->budget;
}

const std::string& World::scratch() const {
  return state_->scratch ? *state_->scratch : device::default_scratch();
}

void World::add_user(const std::shared_ptr<world::User>& user) {
  const std::lock_guard lock(state_->users_mutex);
  std::erase_if(state_->all_users, [](const auto& each) { return each.expired(); });
  state_->all_users.push_back(user);
}

std::shared_ptr<World::Companion>& World::companion() {
  (void)state_->open();
  return state_->companion;
}

void World::flush() {
  const InUse use(*state_);
  (void)state_->open();
  state_->pool->flush();
}

void World::barrier() {
  flush();
  world::enter(*state_->transport, "barrier", 0);
}

void World::enter(std::string_view what, std::uint64_t fingerprint) {
  world::enter(state_->open(), what, fingerprint);
}

void World::enter(std::string_view what, const std::function<std::uint64_t()>& bring) {
  world::enter(state_->open(), what, bring);
}

void World::leave(const std::optional<Error>& failure) {
  world::leave(state_->open(), failure);
}

void World::together(std::string_view what, std::uint64_t fingerprint, const std::function<void()>& step) {
  enter(what, fingerprint);
  world::agree(*state_->transport, what, step);
}

std::uint32_t World::register_procedure(const std::string& name, Procedure procedure,
                                        const ProcedureOptions& options) {
  std::uint32_t number = 0;
  const std::string what = "register procedure '" + name + "'";
  const std::uint64_t print = fingerprint(std::as_bytes(std::span(&options.may_block, 1)));
  together(what, print, [&] {
    if (!procedure) throw Error(EINVAL, {.attempted = what, .detail = "no function was given"});
    if (state_->service && state_->service->find(name))
      throw Error(EEXIST, {.attempted = what, .detail = "there is one of this name"});
  });
  if (!state_->service) state_->service = std::make_unique<gpc::Service>(*state_->transport);
  together(what, print, [&] { number = state_->service->add(name, std::move(procedure), options); });
  return number;
}

void World::unregister_procedure(std::uint32_t procedure) {
  together("unregister a procedure", procedure, [&] {
    if (!state_->service)
      throw Error(ENOENT, {.attempted = "unregister procedure " + std::to_string(procedure)});
    state_->service->retire(procedure);
  });
  state_->service->remove(procedure);
}

std::uint32_t World::procedure(const std::string& name) const {
  const auto found = state_->service ? state_->service->find(name) : std::nullopt;
  if (!found)
    throw Error(ENOENT, {.attempted = "call procedure '" + name + "'", .detail = "it is not registered"});
  return *found;
}

Request World::call(int process, std::uint32_t procedure, std::span<const std::byte> header,
                    std::span<const std::byte> payload, CallOptions options) {
  const InUse use(*state_);
  (void)state_->open();
  if (!state_->service)
    throw Error(ENOENT,
                {.attempted = "call procedure " + std::to_string(procedure), .detail = "none is registered"});
  return state_->service->call(process, procedure, header, payload, std::move(options));
}

World::Region World::allocate(std::int64_t size_bytes, std::string_view what) {
  Budget& budget = *state_->budget;
  const std::int64_t taken = world::SegmentSpace::rounded(size_bytes);
  bool reserved = false;
  Region region;
  try {
    together("allocate " + std::string(what), fingerprint(std::as_bytes(std::span(&size_bytes, 1))), [&] {
      if (size_bytes < 0)
        throw Error(EINVAL, {.attempted = "allocate " + std::to_string(size_bytes) + " bytes for " +
                                          std::string(what)});
      budget.reserve(taken, what);
      reserved = true;
    });
    region.entry_ = {state_->pool->allocate(size_bytes), "use an array in memory"};
  } catch (...) {
    if (reserved) budget.release(taken);
    throw;
  }
  region.entry_->budget = state_->budget;
  region.offset_ = region.entry_->allocation.offset;
  region.size_bytes_ = size_bytes;
  region.number_ = ++state_->regions;
  return region;
}

World::Region& World::Region::operator=(Region&& other) noexcept {
  if (this != &other) {
    release();
    entry_ = std::move(other.entry_);
    offset_ = other.offset_;
    size_bytes_ = other.size_bytes_;
    number_ = other.number_;
  }
  return *this;
}

World::Region::~Region() {
  release();
}

void World::Region::release() noexcept {
  if (!entry_ || !entry_.here()) return;
  entry_->budget->release(entry_->allocation.size_bytes);
  entry_->released = true;
  entry_ = {};
}

transport::Segment& World::Region::segment() const {
  transport::Segment* segment = entry_ ? entry_->segment.load() : nullptr;
  if (!segment)
    throw Error(EBADF,
                {.attempted = "use one-sided memory", .detail = entry_ ? "its world was closed" : "none"});
  return *segment;
}
std::byte* World::Region::local() const {
  return segment().local() + offset_;
}

World::Region::Use::Use(const Region& region) : entry_(region.entry()) {
  ++entry_.uses;
  segment_ = entry_.segment.load();
  if (segment_) return;
  end();
  static_cast<void>(region.segment());  // throws
}

void World::Region::Use::end() noexcept {
  if (--entry_.uses == 0) entry_.uses.notify_all();
}

world::Entry& World::Region::entry() const {
  if (!entry_) static_cast<void>(segment());  // throws
  return *entry_;
}

std::uint64_t fingerprint(std::span<const std::byte> bytes, std::uint64_t seed) {
  for (const std::byte each : bytes) seed = (seed ^ static_cast<std::uint64_t>(each)) * 0x100000001b3;
  return seed;
}

}  // namespace outcore
