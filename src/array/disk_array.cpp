#include "outcore/disk_array.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "array/block_transfer.hpp"
#include "array/disk_array_state.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"
#include "world/gate.hpp"

namespace outcore {
namespace {

static_assert(usual_chunk_group == dio::ChunkGrid::default_group);

using array::ChunkMover;
using array::SectionCounterpart;
using array::TransferQueue;
using dio::ChunkStore;

/// Reserves the memory of a mover while it lives.
class AccountedMover {
 public:
  explicit AccountedMover(DiskArray::State& state) : world_(state.world) {
    const auto components = state.components();
    Budget& budget = world_.budget();
    if (!components.empty()) {
      const store::Geometry& geometry = components.front().file->geometry();
      const bool staged = geometry.codec.codec != store::Codec::none;
      reserved_bytes_ =
          ChunkMover::memory_bytes(geometry.stride_bytes(), staged, budget.limit_bytes(), world_.node_size());
    }
    budget.reserve(reserved_bytes_, "buffers of a disk array");
    try {
      mover_.emplace(state.grid, components, budget.limit_bytes(), world_.node_size());
    } catch (...) {
      budget.release(reserved_bytes_);
      throw;
    }
  }
  ~AccountedMover() {
    mover_.reset();
    world_.budget().release(reserved_bytes_);
  }
  AccountedMover(const AccountedMover&) = delete;
  AccountedMover& operator=(const AccountedMover&) = delete;
  ChunkMover& operator*() { return *mover_; }
  ChunkMover* operator->() { return &*mover_; }

 private:
  World& world_;
  std::int64_t reserved_bytes_ = 0;
  std::optional<ChunkMover> mover_;
};

/// Drops copies of chunks that were made before or during a write, which are out of date. The owners have
/// written once all processes have agreed that it was done.
class Forgetting {
 public:
  explicit Forgetting(dio::ChunkClient* client) : client_(client) {}
  ~Forgetting() {
    if (client_) client_->forget_copies();
  }
  Forgetting(const Forgetting&) = delete;
  Forgetting& operator=(const Forgetting&) = delete;

 private:
  dio::ChunkClient* client_;
};

std::string text(const GlobalArray& array, const Section& section) {
  std::string order = std::to_string(array.number()) + " ";
  for (const int axis : section.order) order += std::to_string(axis) + ",";
  return order + section.box.text();
}

/// A box as numbers that can be sent.
struct PlainBox {
  std::int64_t begin[max_rank], end[max_rank];
};

std::vector<Box> all_boxes(transport::Transport& group, const Box& mine) {
  PlainBox plain{};
  std::copy_n(mine.begin.values().data(), mine.rank(), plain.begin);
  std::copy_n(mine.end.values().data(), mine.rank(), plain.end);
  std::vector<PlainBox> all(static_cast<std::size_t>(group.size()));
  group.all_gather(std::as_bytes(std::span(&plain, 1)), std::as_writable_bytes(std::span(all)));
  const auto rank = static_cast<std::size_t>(mine.rank());
  std::vector<Box> boxes;
  boxes.reserve(all.size());
  for (const PlainBox& each : all)
    boxes.push_back({Extents(std::span(each.begin, rank)), Extents(std::span(each.end, rank))});
  return boxes;
}

}  // namespace

// ---- the state

std::string DiskArray::State::kind() const {
  return std::string(name(type)) + " disk array " + grid.shape().text();
}

std::string DiskArray::State::text() const {
  return kind() + (persistent ? " in " + directory.path() : "");
}

void DiskArray::State::check_open(std::string_view attempted) const {
  if (!open)
    throw Error(EBADF, {.attempted = std::string(attempted), .detail = "the " + text() + " was closed"});
  (void)world.transport();  // throws if the world was closed, and the queue with it
}

void DiskArray::State::check_box(const Box& box) const {
  bool fits = box.rank() == grid.shape().rank() && Box::whole(grid.shape()).contains(box);
  for (int i = 0; fits && i < box.rank(); ++i) fits = box.begin[i] <= box.end[i];
  if (!fits)
    throw Error(EINVAL,
                {.attempted = "transfer of box " + box.text(), .detail = "it is not inside the " + text()});
}

void DiskArray::State::check_type(std::string_view attempted, ElementType other) const {
  if (other != type)
    throw Error(EINVAL,
                {.attempted = std::string(attempted) + " a global array of " + std::string(name(other)),
                 .detail = "the other side is a " + text()});
}

void DiskArray::State::check_writable() const {
  if (read_only)
    throw Error(EROFS, {.attempted = "write to the " + text(), .detail = "it was opened read-only"});
  if (directory.uncertain())
    throw Error(EIO, {.attempted = "write to the " + text(), .detail = std::string(ChunkStore::why_frozen)});
}

Request DiskArray::State::submit(std::string_view what, const std::string& arguments,
                                 const std::function<Share()>& prepare, Effect effect,
                                 TransferQueue::Begin begin) {
  std::exception_ptr problem;
  Share share;
  try {
    share = prepare();
  } catch (...) {
    problem = std::current_exception();
  }
  const std::string named = std::string(what) + " " + std::to_string(id) + " " + arguments;
  Request request = queue.submit(
      std::string(what) + ", " + kind(), fingerprint(std::as_bytes(std::span(named))), problem,
      [this, share, effect, name = std::string(what)](const TransferQueue::Context& context) {
        const Forgetting copies(effect == Effect::writes ? client.get() : nullptr);  // when all have written
        world::agree(context.transport, name, [&] { share(context); });
      },
      std::move(begin));
  undelivered.watch(request.state());
  return request;
}

std::int64_t DiskArray::State::measure(const std::string& arguments, transport::Reduction reduction,
                                       const std::function<std::int64_t()>& own) {
  static constexpr std::string_view what = "measure disk array";
  check_open("measure");
  std::int64_t value = 0;
  submit(what, arguments, [&]() -> Share {
    return [this, &value, &own, reduction,
            all = Box::whole(grid.shape())](const TransferQueue::Context& context) {
      std::optional<ChunkStore::Pause> pause;
      world::agree(context.transport, what, [&] { pause.emplace(*store, std::span(&all, 1), false); });
      value = own();
      context.transport.all_reduce(std::span(&value, 1), reduction);
    };
  }).wait();
  return value;
}

std::exception_ptr DiskArray::State::take_undelivered() {
  std::exception_ptr first = undelivered.take();
  if (std::exception_ptr error = client->settle(); error && !first) first = error;
  return first;
}

std::span<const dio::OwnedComponent> DiskArray::State::components() const noexcept {
  return store ? store->components() : std::span<const dio::OwnedComponent>();
}

void DiskArray::State::let_go() noexcept {
  open = false;
  if (client) client->close();
  known.clear();
  store.reset();
}

// ---- transfers

/// The buffers that consecutive reads share, so that the disk always has work.
class DiskArray::State::Reader {
 public:
  Reader(State& state, const Box& box) : pause(*state.store, std::span(&box, 1), false), mover(state) {}

  ChunkStore::Pause pause;
  AccountedMover mover;
};

namespace {

/// This process's part of a collective read into a global array, which may begin while earlier reads end.
class Reading {
 public:
  Reading(DiskArray::State& state, const Box& box) : state_(state), box_(box) {}

  void into(SectionCounterpart target) {
    targets_[0] = std::make_unique<SectionCounterpart>(std::move(target));
  }

  /// Reads ahead while an earlier read ends, as much as its buffers have room for; true if that was all. Does
  /// nothing if the earlier read is of another array, or if somebody waits for the caches.
  bool begin(std::size_t before) {
    if (!reader_) {
      auto reader = state_.reader.lock();
      if (!reader || !reader->pause.extend(box_)) return false;
      reader_ = std::move(reader);
    }
    return reader_->mover->begin_reading(before, box_);
  }

  void run(const TransferQueue::Context& context) {
    auto reader = std::move(reader_);  // gone before anybody learns of an error, as the array may be then
    if (!reader) state_.reader = reader = std::make_shared<DiskArray::State::Reader>(state_, box_);
    reader->mover->read(box_, targets_, context.begin_next);
    state_.world.flush();  // all elements must have arrived before the others are told so
  }

 private:
  DiskArray::State& state_;
  const Box box_;
  std::unique_ptr<array::Counterpart> targets_[1];
  std::shared_ptr<DiskArray::State::Reader> reader_;
};

}  // namespace

namespace {

/// A collective write to boxes of the processes: it is done as a whole, or the disk space that it took is
/// given back.
class Writing {
 public:
  Writing(DiskArray::State& state, const TransferQueue::Context& context, std::span<const Box> boxes)
      : state_(state), context_(context), boxes_(boxes) {}

  void run(const std::function<void(ChunkMover& mover)>& write) {
    constexpr std::string_view what = "write disk array";
    state_.check_writable();  // a commit before it may have failed
    state_.changed = true;
    std::optional<ChunkStore::Pause> pause;
    std::optional<AccountedMover> mover;
    try {
      world::agree(context_.transport, what, [&] {
        pause.emplace(*state_.store, boxes_, true);
        mover.emplace(state_);
        array::reserve_blocks(**mover, boxes_);
      });
      world::agree(context_.transport, what, [&] { write(**mover); });
    } catch (...) {
      if (mover) (*mover)->take_back(boxes_);
      throw;
    }
  }

 private:
  DiskArray::State& state_;
  const TransferQueue::Context& context_;
  const std::span<const Box> boxes_;
};

}  // namespace

Request DiskArray::write_all_async(const GlobalArray& from, const Section& section, const Box& box) {
  State& state = *state_;
  state.check_open("write");
  state.world.flush();  // the puts of this process into the global array must arrive before the others begin
  return state.submit(
      "write disk array", text(from, section) + box.text(),
      [&]() -> State::Share {
        state.check_writable();
        state.check_box(box);
        state.check_type("write from", from.type());
        return [&state, box,
                source = SectionCounterpart(from, section, box)](const TransferQueue::Context& context) {
          Writing(state, context, std::span(&box, 1)).run([&](ChunkMover& mover) {
            mover.write(box, source);
            mover.finish();
          });
        };
      },
      State::Effect::writes);
}

Request DiskArray::read_all_async(GlobalArray& to, const Section& section, const Box& box) {
  State& state = *state_;
  state.check_open("read");
  state.world.flush();
  const auto reading = std::make_shared<Reading>(state, box);
  return state.submit(
      "read disk array", text(to, section) + box.text(),
      [&]() -> State::Share {
        state.check_box(box);
        state.check_type("read into", to.type());
        reading->into(SectionCounterpart(to, section, box));
        return [reading](const TransferQueue::Context& context) { reading->run(context); };
      },
      State::Effect::none, [reading](std::size_t before) { return reading->begin(before); });
}

Request DiskArray::write_all_async(const Strided& from, const Box& box) {
  State& state = *state_;
  state.check_open("write");
  return state.submit(
      "write blocks to disk array", "",
      [&]() -> State::Share {
        state.check_writable();
        state.check_box(box);
        return [&state, from, box](const TransferQueue::Context& context) {
          const std::vector<Box> boxes = all_boxes(context.transport, box);
          Writing(state, context, boxes).run([&](ChunkMover& mover) {
            array::write_blocks(context, mover, state.grid, state.type, from, boxes);
          });
        };
      },
      State::Effect::writes);
}

Request DiskArray::read_all_async(const Strided& to, const Box& box) {
  State& state = *state_;
  state.check_open("read");
  return state.submit("read blocks of disk array", "", [&]() -> State::Share {
    state.check_box(box);
    return [&state, to, box](const TransferQueue::Context& context) {
      const std::vector<Box> boxes = all_boxes(context.transport, box);
      std::optional<ChunkStore::Pause> pause;
      std::optional<AccountedMover> mover;
      world::agree(context.transport, "read blocks of disk array", [&] {
        pause.emplace(*state.store, boxes, false);
        mover.emplace(state);
      });
      array::read_blocks(context, **mover, state.grid, state.type, to, boxes);
    };
  });
}

Request DiskArray::write_all_async(const ConstElements& from, const Box& box) {
  Strided memory;
  try {
    memory = from.strided(box.shape(), type(), "disk array");
  } catch (const Error& error) {
    return refuse(error);
  }
  return write_all_async(memory, box);
}

Request DiskArray::read_all_async(const Elements& to, const Box& box) {
  Strided memory;
  try {
    memory = to.strided(box.shape(), type(), "disk array");
  } catch (const Error& error) {
    return refuse(error);
  }
  return read_all_async(memory, box);
}

Request DiskArray::refuse(const Error& error) {
  state_->check_open(error.context().attempted);
  return state_->submit("", "", [&]() -> State::Share { throw error; });
}

// ---- life

DiskArray::DiskArray(std::unique_ptr<State> state)
    : DiskArrayAccess(state->client), state_(std::move(state), "use a disk array") {}

DiskArray::DiskArray(World& world, const Extents& shape, ElementType type, const DiskArrayOptions& options)
    : DiskArray(world, [&](Extents& wanted, ElementType& element_type, DiskArrayOptions& all_options) {
        wanted = shape;
        element_type = type;
        all_options = options;
      }) {}

DiskArray::DiskArray(World& world, const Make& make)
    : state_(std::make_unique<State>(world), "use a disk array") {
  state_->create(make);
  client_ = {state_->client, "use a disk array"};
}

DiskArray DiskArray::open(World& world, const std::string& path, bool read_only,
                          const DiskArrayCaches& caches, int contained) {
  return open(world, [&] { return DiskArrayOpening{path, read_only, caches, contained}; });
}

DiskArray DiskArray::open(World& world, const MakeOpening& make) {
  auto state = std::make_unique<State>(world);
  state->load(make);
  return DiskArray(std::move(state));
}

DiskArray::DiskArray(DiskArray&&) noexcept = default;

DiskArray& DiskArray::operator=(DiskArray&& other) noexcept {
  if (state_) drop();
  DiskArrayAccess::operator=(std::move(other));
  state_ = std::move(other.state_);
  return *this;
}

DiskArray::~DiskArray() {
  if (state_) drop();
}

void DiskArray::drop() {
  if (!state_.here()) return;
  State& state = *state_;
  (void)state.take_undelivered();  // callers that want the error have called close
  const bool never_committed = state.open && state.generation == 0 && !state.directory.uncertain();
  state.let_go();
  if (never_committed && state.directory.replaced() > 0) state.directory.give_up(state.world.rank());
  state.directory.unlock();
}

void DiskArray::flush() {
  flush(state_->metadata);
}

void DiskArray::flush(std::string_view metadata) {
  flush([&] { return std::string(metadata); });
}

void DiskArray::flush(const MakeMetadata& make) {
  State& state = *state_;
  state.check_open("flush");
  std::string metadata;
  std::exception_ptr problem;
  try {
    metadata = make();
  } catch (...) {
    problem = std::current_exception();
  }
  state
      .submit("flush disk array", metadata,
              [&]() -> State::Share {
                if (problem) std::rethrow_exception(problem);
                // Other processes may have seen the error when they waited: all get it again, or those would
                // go on alone.
                if (const std::exception_ptr error = state.take_undelivered()) std::rethrow_exception(error);
                state.check_writable();
                return [&state, metadata](const TransferQueue::Context& context) {
                  state.commit(context, metadata);
                };
              })
      .wait();
}

void DiskArray::close() {
  if (!state_.here()) return;
  State& state = *state_;
  if (!state.open) return;
  state.check_open("close");
  const auto end = [&state] {
    state.let_go();
    state.directory.unlock();
  };
  Request request = state.submit("close disk array", "", [&]() -> State::Share {
    if (const std::exception_ptr error = state.take_undelivered()) std::rethrow_exception(error);
    return [&state](const TransferQueue::Context& context) {
      // Other processes may have put elements here of which this one does not know.
      std::int64_t changed = state.changed || state.store->changed() ? 1 : 0;
      context.transport.all_reduce(std::span(&changed, 1), transport::Reduction::max);
      if (!state.persistent || !changed) return;
      state.check_writable();
      state.commit(context, state.metadata);
    };
  });
  try {
    request.wait();
  } catch (const Error&) {
    if (state.directory.uncertain()) end();  // at all processes: only the next opening tells what is there
    throw;
  }
  end();
}

void DiskArray::remove() {
  State& state = *state_;
  state.check_open("remove");
  Request request = state.submit("remove disk array", "", [&]() -> State::Share {
    state.check_writable();
    return [&state](const TransferQueue::Context& context) {
      state.let_go();
      if (state.persistent) state.directory.remove(context.transport);
    };
  });
  try {
    request.wait();
  } catch (const Error&) {
    if (!state.open) state.directory.unlock();
    throw;
  }
  state.directory.unlock();
}

// ---- what it is

int DiskArray::components() const noexcept {
  return state_.get()->grid.components();
}
int DiskArray::owner(int component) const noexcept {
  return state_.get()->owners[static_cast<std::size_t>(component)];
}
Placement DiskArray::placement() const noexcept {
  return state_.get()->directory.placement();
}
const store::CodecOptions& DiskArray::codec() const noexcept {
  return state_.get()->codec;
}
const std::string& DiskArray::path() const noexcept {
  return state_.get()->directory.path();
}
const std::string& DiskArray::identity() const noexcept {
  return state_.get()->identity;
}
std::uint64_t DiskArray::generation() const noexcept {
  return state_.get()->generation;
}
const std::string& DiskArray::metadata() const noexcept {
  return state_.get()->metadata;
}
bool DiskArray::read_only() const noexcept {
  return state_.get()->read_only;
}
bool DiskArray::closed() const noexcept {
  return !state_.get()->open;
}

std::int64_t DiskArray::transfer_bytes(World& world) noexcept {
  return ChunkMover::memory_bytes(dio::usual_chunk_bytes, false, world.budget().limit_bytes(),
                                  world.node_size());
}

void DiskArray::prepare(World& world) {
  (void)array::ArrayServices::of(world);
}

std::string DiskArray::share(World& parent) {
  state_->check_open("share");
  return state_->share(parent);
}

std::int64_t DiskArray::stored_bytes() {
  return state_->measure("", transport::Reduction::sum, [this] {
    std::int64_t bytes = 0;
    for (const dio::OwnedComponent& each : state_->components())
      bytes += each.file->table().total_stored_bytes();
    return bytes;
  });
}

std::int64_t DiskArray::next_written(std::int64_t chunk) {
  const dio::ChunkGrid& grid = state_->grid;
  const std::int64_t found =
      state_->measure(std::to_string(chunk), transport::Reduction::min, [this, &grid, chunk] {
        std::int64_t next = grid.chunks();
        for (const dio::OwnedComponent& each : state_->components()) {
          const std::int64_t slot = each.file->table().next_written(grid.first_slot(each.index, chunk));
          if (slot >= 0) next = std::min(next, grid.chunk_at(each.index, slot));
        }
        return next;
      });
  return found < grid.chunks() ? found : -1;
}

}  // namespace outcore
