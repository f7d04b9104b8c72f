// Striped files: how they are made, put on stable storage, and closed.
#include "dio/stripes/striped_file.hpp"

#include <algorithm>
#include <cerrno>
#include <random>
#include <utility>

#include "base/file_size_limit.hpp"
#include "dio/stripes/striped_file_state.hpp"
#include "dio/visibility.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"
#include "outcore/scratch.hpp"
#include "outcore/trace.hpp"
#include "world/gate.hpp"

namespace outcore::dio {
namespace {

constexpr std::string_view creating = "create striped file";
constexpr int max_components_per_node = 8;
constexpr int max_components_shared = 16;

[[noreturn]] void fail(int errno_value, const std::string& path, std::string detail) {
  throw Error(errno_value, {.attempted = std::string(creating), .path = path, .detail = std::move(detail)});
}

void check(const StripedFileOptions& options) {
  if (options.expected_bytes < 0)
    fail(EINVAL, options.name, std::to_string(options.expected_bytes) + " bytes are expected");
  if (options.client_cache_bytes < 0)
    fail(EINVAL, options.name, "a client cache of " + std::to_string(options.client_cache_bytes) + " bytes");
  if (options.components_per_node < 0)
    fail(EINVAL, options.name, std::to_string(options.components_per_node) + " components for each node");
}

/// Sends the text of the root to all processes.
void broadcast(transport::Transport& group, std::string& text, int root) {
  auto size = static_cast<std::int64_t>(text.size());
  group.broadcast(std::as_writable_bytes(std::span(&size, 1)), root);
  text.resize(static_cast<std::size_t>(size));
  group.broadcast(std::as_writable_bytes(std::span(text)), root);
}

/// Whether other hosts see at once what one host has written, as POSIX requires.
bool is_coherent(const device::FileSystem& system) {
  const auto one_of = [&](auto... names) { return ((system.type == names) || ...); };
  return !one_of("nfs", "cifs", "smb", "smb2", "afs", "9p", "fuse");
}

}  // namespace

StripedFile::StripedFile(World& world, const StripedFileOptions& options)
    : StripedFile(world, [&] { return options; }) {}

StripedFile::StripedFile(World& world, const Make& make)
    : state_(std::make_shared<State>(world), "use a striped file") {
  state_->create(make);
}

StripedFile::~StripedFile() = default;
StripedFile::StripedFile(StripedFile&&) noexcept = default;
StripedFile& StripedFile::operator=(StripedFile&&) noexcept = default;

void StripedFile::State::create(const Make& make) {
  StripedFileOptions options;
  std::int64_t stripe_bytes = 0;
  world.enter(creating, [&] {
    options = make();
    check(options);
    stripe_bytes = Stripes::suitable_bytes(options.typical_request_bytes);
    const std::string arguments = options.name + "/" + std::to_string(options.typical_request_bytes) + "/" +
                                  std::to_string(options.expected_bytes) + "/" +
                                  std::to_string(options.reserve) + "/" +
                                  std::to_string(static_cast<int>(options.placement)) + "/" +
                                  std::to_string(options.components_per_node);
    return fingerprint(std::as_bytes(std::span(arguments)));
  });
  name = options.name;
  make_directory(options);
  choose_owners(options);
  stripes = Stripes(stripe_bytes, static_cast<int>(owners.size()));
  components = std::make_shared<StripedComponents>();
  components->files.resize(owners.size());
  components->rank = world.rank();
  open_components(options);
  trace_file = trace::file_id(name);
  open = true;
}

/// The paths of the components of this node, which have names only until all processes have opened them.
void StripedFile::State::make_directory(const StripedFileOptions& options) {
  Visibility seen;
  world.together(creating, 0, [&] {
    if (world.rank() != 0) return;
    directory = device::process_directory(world.scratch());
    seen.leave_mark(directory);
  });
  broadcast(world.transport(), directory, 0);
  seen.look(world, directory);
  placement = seen.resolved(options.placement);
  world.together(creating, 0, [&] {
    if (world.rank() == 0) seen.remove_mark();
    if (placement == Placement::shared && !seen.by_me())
      fail(ENOENT, directory,
           "placement is shared, but this process does not see the directory of the first");
    if (placement == Placement::local && world.node_rank() == 0)
      directory = device::process_directory(world.scratch());
  });
  if (placement == Placement::local) broadcast(world.node_transport(), directory, 0);
}

/// Component c lies on node c % nodes; the processes of a node own its components in turn.
void StripedFile::State::choose_owners(const StripedFileOptions& options) {
  std::vector<int> node(static_cast<std::size_t>(world.size()));
  const int mine = world.node();
  world.transport().all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(node)));
  std::vector<std::vector<int>> members(static_cast<std::size_t>(world.node_count()));
  for (std::size_t rank = 0; rank < node.size(); ++rank)
    members[static_cast<std::size_t>(node[rank])].push_back(static_cast<int>(rank));
  std::size_t fewest = max_components_per_node;
  for (const auto& each : members) fewest = std::min(fewest, each.size());
  const std::size_t per_node =
      options.components_per_node > 0 ? static_cast<std::size_t>(options.components_per_node) : fewest;
  std::size_t count = per_node * members.size();
  if (placement == Placement::shared) count = std::min<std::size_t>(count, max_components_shared);
  for (std::size_t c = 0; c < count; ++c) {
    const auto& processes = members[c % members.size()];
    owners.push_back(processes[c / members.size() % processes.size()]);
  }
}

void StripedFile::State::open_components(const StripedFileOptions& options) {
  std::int64_t random = static_cast<std::int64_t>(std::random_device{}()) << 31 ^ std::random_device{}();
  world.transport().broadcast(std::as_writable_bytes(std::span(&random, 1)), 0);
  const std::string id = std::to_string(random);

  const auto path = [&](int c) { return directory + "/shared." + id + "." + std::to_string(c); };
  const auto open_one = [&](int c, bool create) {
    device::OpenOptions how;
    how.create = how.exclusive = create;
    how.page_cache = options.page_cache;
    how.expected_bytes = stripes.component_bytes(c, options.expected_bytes);
    how.engine = options.engine;
    device::File opened(path(c), how);
    if (create) components->names.push_back(path(c));
    if (create && options.reserve) (void)opened.reserve(0, how.expected_bytes);
    components->files[static_cast<std::size_t>(c)] = std::move(opened);
  };
  const device::FileSystem system = device::file_system(directory);
  // A server may see a local file system where its clients see NFS, but all must decide alike.
  std::int64_t coherent = is_coherent(system) ? 1 : 0;
  world.transport().all_reduce(std::span(&coherent, 1), transport::Reduction::min);
  const bool seen = placement == Placement::shared && coherent == 1;
  world.together(creating, 0, [&] {
    check_space(options);
    for (int c = 0; c < stripes.components(); ++c)
      if (is_mine(c)) open_one(c, true);
  });
  world.together(creating, 0, [&] {
    for (int c = 0; c < stripes.components(); ++c)
      if (!is_mine(c) && (seen || c % world.node_count() == world.node())) open_one(c, false);
  });
  const bool by_calls = !seen && world.node_count() > 1;
  if (by_calls) {
    world.together(creating, 0, [&] {
      components->prepare_to_serve(world.budget());
      if (options.client_cache_bytes > 0)
        copies =
            std::make_shared<BlockCopies>(world.budget(), options.client_cache_bytes, copied_block_bytes);
    });
    procedure = world.register_procedure(
        "striped file " + id, [served = components](Call call) { served->serve(std::move(call)); });
    served = true;
  }
  world.together(creating, 0, [&] {
    if (!system.network) components->remove_names();
  });
}

/// The parts of the processes of a node, or of all that share a disk, must fit on the disk together.
void StripedFile::State::check_space(const StripedFileOptions& options) const {
  const std::int64_t nodes = placement == Placement::shared ? 1 : world.node_count();
  const std::int64_t needed = options.expected_bytes / nodes;
  check_file_size(creating, directory + "/" + name, options.expected_bytes / stripes.components());
  const device::FileSystem disk = device::file_system(directory);
  if (needed > disk.free_bytes)
    fail(ENOSPC, directory,
         "'" + name + "' is to have " + std::to_string(options.expected_bytes) + " bytes, " +
             std::to_string(needed) + " of them here; " + std::to_string(disk.free_bytes) + " are free");
}

// ---- the file as a whole

StripedFile::State::~State() {
  try {
    if (open) settle();
  } catch (const Error&) {  // close() tells
  }
}

void StripedFile::State::check_open(std::string_view attempted) const {
  if (!open)
    throw Error(EBADF, {.attempted = std::string(attempted), .path = name, .detail = "it is closed"});
}

void StripedFile::State::settle() {
  std::exception_ptr first = undelivered.take();
  if (copies) copies->forget([](std::int64_t) { return true; });
  for (auto& each : components->files) try {
      if (each) each->settle();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  if (first) std::rethrow_exception(first);
}

void StripedFile::State::flush() {
  world.together("flush striped file", 0, [&] {
    check_open("flush");
    settle();
  });
  world.together("flush striped file", 0, [&] {
    for (int c = 0; c < stripes.components(); ++c)
      if (is_mine(c)) components->at(c).flush();
  });
}

void StripedFile::State::close() {
  if (!open.exchange(false)) return;
  std::exception_ptr failure;
  try {
    world.together("close striped file", 0, [&] { settle(); });
  } catch (...) {
    failure = std::current_exception();
  }
  if (std::exchange(served, false)) world.unregister_procedure(procedure);
  components->remove_names();
  for (auto& each : components->files) try {
      if (each) each->close();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  if (failure) std::rethrow_exception(failure);
}

void StripedFile::settle() {
  state_->check_open("sync");
  state_->settle();
}
void StripedFile::flush() {
  state_->flush();
}
void StripedFile::close() {
  if (!state_.here()) return;
  state_->close();
}
bool StripedFile::closed() const noexcept {
  return !state_ || !state_.get()->open;
}
const Stripes& StripedFile::stripes() const noexcept {
  return state_.get()->stripes;
}
Placement StripedFile::placement() const noexcept {
  return state_.get()->placement;
}
int StripedFile::owner(int component) const noexcept {
  return state_.get()->owners[static_cast<std::size_t>(component)];
}
bool StripedFile::reachable(int component) const noexcept {
  return state_.get()->reaches(component);
}
const std::string& StripedFile::directory() const noexcept {
  return state_.get()->directory;
}
World& StripedFile::world() const noexcept {
  return state_.get()->world;
}

std::int64_t StripedFile::stored_bytes() {
  std::int64_t sum = 0;
  state_->world.together("size of a striped file", 0, [&] {
    state_->check_open("ask for the size of");
    for (int c = 0; c < state_->stripes.components(); ++c)
      if (state_->is_mine(c)) sum += state_->components->at(c).length();
  });
  state_->world.transport().all_reduce(std::span(&sum, 1), transport::Reduction::sum);
  return sum;
}

}  // namespace outcore::dio
