#include "dio/chunks/client.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/accumulate_strided.hpp"
#include "base/stream_copy.hpp"
#include "dio/chunks/portions.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"

namespace outcore::dio {
namespace {

constexpr std::int64_t portion_bytes = 4 << 20;  // portions of a box that are requested at once
constexpr std::int64_t little_bytes = 64 << 10;  // packed in microseconds

std::byte* at(const Strided& memory, const Extents& index) {
  std::byte* place = memory.data;
  for (int i = 0; i < index.rank(); ++i) place += index[i] * memory.stride_bytes[i];
  return place;
}

const char* name_of(ChunkOperation operation) {
  switch (operation) {
    case ChunkOperation::get:
      return "get";
    case ChunkOperation::put:
      return "put";
    case ChunkOperation::accumulate:
      return "accumulate";
    case ChunkOperation::prefetch:
      break;
  }
  return "prefetch";
}

bool is_row_major(const Extents& count, const Extents& stride_bytes, std::size_t element_bytes) {
  const Extents wanted = row_major(count, element_bytes);
  for (int i = 0; i < count.rank(); ++i)
    if (count[i] != 1 && stride_bytes[i] != wanted[i]) return false;
  return true;
}

}  // namespace

ChunkClient::ChunkClient(World& world, ChunkService& service, ChunkLayout layout,
                         std::shared_ptr<ChunkStore> store, std::int64_t copies_bytes)
    : world_(world), service_(service), layout_(std::move(layout)), store_(std::move(store)) {
  if (copies_bytes > 0) copies_.emplace(world.budget(), copies_bytes, layout_.grid.chunk_bytes());
}

// ---- checks

void ChunkClient::check_open(const char* attempted) const {
  (void)world_.transport();  // throws if the world was closed, and the service with it
  const std::lock_guard lock(mutex_);
  if (!open_) throw_closed(attempted);
}

void ChunkClient::throw_closed(const char* attempted) const {
  throw Error(EBADF, {.attempted = attempted, .detail = "the " + layout_.text() + " was closed"});
}

void ChunkClient::check(ChunkOperation operation, const Slices& slices, const Strided& memory) const {
  const Extents& shape = layout_.grid.shape();
  const Box& box = slices.box;
  const auto refuse = [&](const std::string& detail) {
    throw Error(EINVAL,
                {.attempted = "transfer of box " + box.text() + " of a " + layout_.text(), .detail = detail});
  };
  if (!slices.fits(shape)) refuse("it is not inside, or its steps are not positive: " + slices.step.text());
  if (memory.stride_bytes.rank() != shape.rank())
    refuse("the memory has " + std::to_string(memory.stride_bytes.rank()) + " dimensions");
  if (operation == ChunkOperation::get || operation == ChunkOperation::prefetch) return;
  if (layout_.read_only)
    throw Error(EROFS, {.attempted = "write to the " + layout_.text(), .detail = "it was opened read-only"});
  if (operation == ChunkOperation::accumulate) check_accumulated(layout_.type, layout_.text());
}

bool ChunkClient::is_here(int component) const {
  return store_ && layout_.owners[static_cast<std::size_t>(component)] == world_.rank();
}

/// Whether all chunks are at other processes, so that nothing takes time here.
bool ChunkClient::asks_little(const Slices& slices) const {
  const std::int64_t bytes =
      slices.shape().product() * static_cast<std::int64_t>(layout_.grid.element_bytes());
  return bytes <= little_bytes &&
         std::ranges::none_of(components_of(layout_.grid, slices.box), [&](int c) { return is_here(c); });
}

// ---- a request, and its portions

Request ChunkClient::start(ChunkOperation operation, const Slices& slices, const Strided& memory,
                           const void* alpha, bool waits) {
  check_open(name_of(operation));
  check(operation, slices, memory);
  Task task{.operation = operation, .slices = slices, .memory = memory, .request = nullptr};
  if (operation == ChunkOperation::accumulate)
    std::memcpy(task.alpha.data(), alpha ? alpha : one_of(layout_.type), size_bytes(layout_.type));
  const auto own = std::make_shared<std::weak_ptr<ComposedRequest>>();
  task.request =
      std::make_shared<ComposedRequest>([self = shared_from_this(), operation, own, box = slices.box](
                                            bool failed) { self->note_end(operation, box, *own, failed); });
  *own = task.request;
  note_begin(operation);
  if (waits || asks_little(slices))
    run(task);
  else
    try {
      service_.submit([self = shared_from_this(), task] { self->run(task); });
    } catch (...) {  // no thread
      task.request->end_part(std::current_exception());
    }
  return Request(task.request);
}

void ChunkClient::note_begin(ChunkOperation operation) {
  const std::lock_guard lock(mutex_);
  if (!open_) throw_closed(name_of(operation));
  ++under_way_;
  if (operation == ChunkOperation::put || operation == ChunkOperation::accumulate) ++changes_under_way_;
}

void ChunkClient::note_end(ChunkOperation operation, const Box& box,
                           const std::weak_ptr<ComposedRequest>& request, bool failed) {
  const bool changes = operation == ChunkOperation::put || operation == ChunkOperation::accumulate;
  if (changes && copies_)
    copies_->forget(
        [&](std::int64_t chunk) { return !intersection(layout_.grid.chunk_box(chunk), box).empty(); });
  const std::lock_guard lock(mutex_);
  --under_way_;
  if (changes) {
    --changes_under_way_;
    if (failed)
      if (auto its = request.lock()) undelivered_.watch(std::move(its));
  }
  ended_.notify_all();
}

/// Carries out the local part, and sends calls to other owners.
void ChunkClient::run(const Task& task) {
  std::exception_ptr failure;
  try {
    const ChunkGrid& grid = layout_.grid;
    const std::int64_t bytes =
        task.slices.shape().product() * static_cast<std::int64_t>(grid.element_bytes());
    const StreamedCopies streams(task.operation == ChunkOperation::get ? bytes : 0);
    // Portions of whole chunks, as far as the box has them: a chunk that is set in two parts would have to be
    // read first.
    const Portions portions(grid.chunks_of(task.slices.box), Extents::filled(grid.chunk().rank(), 1),
                            std::max<std::int64_t>(portion_bytes / grid.chunk_bytes(), 1));
    std::optional<Task> next;
    for (std::int64_t i = 0; i < portions.count() && !task.request->failed(); ++i) {
      const Task portion = next ? *next : portion_of(task, portions[i]);
      next.reset();
      if (i + 1 < portions.count()) next = portion_of(task, portions[i + 1]);
      run_portion(portion, next ? &*next : nullptr);
    }
  } catch (...) {
    failure = std::current_exception();
  }
  task.request->end_part(failure);
}

ChunkClient::Task ChunkClient::portion_of(const Task& task, Box chunks) const {
  for (int k = 0; k < chunks.rank(); ++k) {
    chunks.begin[k] *= layout_.grid.chunk()[k];
    chunks.end[k] *= layout_.grid.chunk()[k];
  }
  Task portion = task;
  Extents first;
  portion.slices = task.slices.within(chunks, first);
  portion.memory.data = at(task.memory, first);
  return portion;
}

/// Meanwhile the disk reads the local part of the next portion, if the cache has room for both.
void ChunkClient::run_portion(const Task& portion, const Task* next) {
  const bool reads = portion.operation == ChunkOperation::get;
  const auto components = components_of(layout_.grid, portion.slices.box);
  for (const int component : components)
    if (!is_here(component)) reads&& copies_ ? ask_for_chunks(portion, component) : ask(portion, component);
  if (next && reads && store_)
    for (const int component : components_of(layout_.grid, next->slices.box))
      if (is_here(component) &&
          store_->has_room(component, 2 * layout_.grid.chunks_of(portion.slices.box).shape().product()))
        store_->prefetch(component, next->slices);
  for (const int component : components)
    if (is_here(component)) do_here(portion, component);
}

void ChunkClient::do_here(const Task& portion, int component) {
  const auto memory_of = [&](const ChunkOverlap& overlap) {
    return Strided{at(portion.memory, overlap.first), portion.memory.stride_bytes};
  };
  if (portion.operation == ChunkOperation::get)
    store_->get(component, portion.slices, memory_of);
  else if (portion.operation == ChunkOperation::put)
    store_->put(component, portion.slices, memory_of);
  else
    store_->accumulate(component, portion.slices, memory_of, portion.alpha.data());
}

/// The elements of one call. If they do not lie together in memory of the caller, they pass through a copy.
struct ChunkClient::Parcel {
  Task portion;
  const ChunkGrid* grid;
  int component;
  std::byte* direct = nullptr;  ///< where all of them lie, one after another
  std::int64_t bytes = 0;
  std::optional<Staged> staged{};

  Parcel(const Task& task, const ChunkGrid& g, int c) : portion(task), grid(&g), component(c) {
    bool together = true;
    const std::byte* next = nullptr;
    for_each_overlap(*grid, component, portion.slices, [&](const ChunkOverlap& overlap) {
      std::byte* place = at(portion.memory, overlap.first);
      if (bytes == 0) direct = place;
      together = together && (bytes == 0 || place == next) &&
                 is_row_major(overlap.count, portion.memory.stride_bytes, grid->element_bytes());
      const std::int64_t size = overlap.elements() * static_cast<std::int64_t>(grid->element_bytes());
      bytes += size;
      next = place + size;
    });
    if (!together) direct = nullptr;
  }

  [[nodiscard]] std::span<std::byte> memory() const {
    return direct ? std::span(direct, static_cast<std::size_t>(bytes)) : staged->span();
  }

  /// Copies between the copy and the memory of the caller.
  void copy(bool pack) {
    if (direct) return;
    std::byte* packed = staged->span().data();
    for_each_overlap(*grid, component, portion.slices, [&](const ChunkOverlap& overlap) {
      const Extents stride = row_major(overlap.count, grid->element_bytes());
      std::byte* place = at(portion.memory, overlap.first);
      if (pack)
        copy_strided(packed, stride, place, portion.memory.stride_bytes, overlap.count,
                     grid->element_bytes());
      else
        copy_strided(place, portion.memory.stride_bytes, packed, stride, overlap.count,
                     grid->element_bytes());
      packed += overlap.elements() * static_cast<std::int64_t>(grid->element_bytes());
    });
  }
};

void ChunkClient::ask(const Task& portion, int component) {
  const auto parcel = std::make_shared<Parcel>(portion, layout_.grid, component);
  if (parcel->bytes == 0) return;  // the steps pass over it
  if (!parcel->direct) {
    service_.staging()->acquire(parcel->bytes);
    parcel->staged.emplace(service_.staging(), parcel->bytes);
  }
  const bool reads = portion.operation == ChunkOperation::get;
  if (!reads) parcel->copy(true);
  ChunkCall header(layout_.number, component, portion.operation, portion.slices);
  header.alpha = portion.alpha;
  const auto then = [parcel, reads, self = shared_from_this()](std::span<std::byte> reply,
                                                               const Error* error) {
    std::exception_ptr failure = error ? std::make_exception_ptr(*error) : nullptr;
    if (!failure && reads) failure = self->unless_complete(reply.size(), parcel->memory().size());
    if (!failure && reads) parcel->copy(false);
    parcel->staged.reset();
    parcel->portion.request->end_part(failure);
  };
  portion.request->begin_part();
  try {
    portion.request->add(service_.call(layout_.owners[static_cast<std::size_t>(component)], header,
                                       reads ? std::span<const std::byte>() : parcel->memory(),
                                       {.reply = reads ? parcel->memory() : std::span<std::byte>(),
                                        .max_reply_bytes = reads ? parcel->bytes : 0,
                                        .then = then}));
  } catch (...) {
    portion.request->end_part(std::current_exception());
    throw;
  }
}

std::exception_ptr ChunkClient::unless_complete(std::size_t came, std::size_t wanted) const {
  if (came == wanted) return nullptr;
  return std::make_exception_ptr(Error(EIO, {.attempted = "get from a " + layout_.text(),
                                             .size_bytes = static_cast<std::int64_t>(wanted),
                                             .detail = std::to_string(came) + " bytes came"}));
}

/// A get through copies of whole chunks, which stay for later gets.
void ChunkClient::ask_for_chunks(const Task& portion, int component) {
  const ChunkGrid& grid = layout_.grid;
  for_each_overlap(grid, component, portion.slices, [&](const ChunkOverlap& overlap) {
    const std::int64_t number = grid.chunk_at(component, overlap.slot);
    const Box chunk = grid.chunk_box(number);
    Extents stride = row_major(chunk.shape(), grid.element_bytes());
    std::int64_t offset = 0;  // of the first element of the overlap
    for (int i = 0; i < chunk.rank(); ++i) {
      const std::int64_t step = portion.slices.step[i];
      offset += (portion.slices.box.begin[i] + overlap.first[i] * step - chunk.begin[i]) * stride[i];
      if (overlap.count[i] > 1) stride[i] *= step;  // else of any size
    }
    const auto ready = [portion, stride, offset, first = overlap.first, count = overlap.count,
                        element_bytes = grid.element_bytes()](const std::byte* data,
                                                              const std::exception_ptr& failure) {
      if (!failure)
        copy_strided(at(portion.memory, first), portion.memory.stride_bytes, data + offset, stride, count,
                     element_bytes);
      portion.request->end_part(failure);
    };
    portion.request->begin_part();
    if (copies_->use(number, ready, [&](std::span<std::byte> memory, const BlockCopies::Loaded& loaded) {
          load(portion, component, chunk, memory, loaded);
        }))
      return;
    portion.request->end_part(nullptr);  // the next calls add parts, and may throw
    Task single = portion;
    Extents first;
    single.slices = portion.slices.within(chunk, first);
    single.memory.data = at(portion.memory, first);
    ask(single, component);
  });
}

void ChunkClient::load(const Task& portion, int component, const Box& chunk, std::span<std::byte> memory,
                       const BlockCopies::Loaded& loaded) {
  const auto bytes = static_cast<std::size_t>(chunk.volume()) * layout_.grid.element_bytes();
  const auto then = [loaded, bytes, self = shared_from_this()](std::span<std::byte> reply,
                                                               const Error* error) {
    loaded(error ? std::make_exception_ptr(*error) : self->unless_complete(reply.size(), bytes));
  };
  try {
    portion.request->add(
        service_.call(layout_.owners[static_cast<std::size_t>(component)],
                      ChunkCall(layout_.number, component, ChunkOperation::get, Slices(chunk)), {},
                      {.reply = memory.first(bytes), .then = then}));
  } catch (...) {
    loaded(std::current_exception());
  }
}

void ChunkClient::forget_copies() {
  if (copies_) copies_->forget([](std::int64_t) { return true; });
}

void ChunkClient::prefetch(const Box& box) {
  const Slices slices(box);
  check_open(name_of(ChunkOperation::prefetch));
  check(ChunkOperation::prefetch, slices, {nullptr, slices.step});
  note_begin(ChunkOperation::prefetch);
  std::exception_ptr failure;
  try {
    for (const int component : components_of(layout_.grid, box)) {
      if (is_here(component))
        store_->prefetch(component, slices);
      else
        (void)service_.call(layout_.owners[static_cast<std::size_t>(component)],
                            ChunkCall(layout_.number, component, ChunkOperation::prefetch, slices), {}, {});
    }
  } catch (...) {
    failure = std::current_exception();
  }
  note_end(ChunkOperation::prefetch, box, {}, false);
  if (failure) std::rethrow_exception(failure);
}

// ---- all of them

std::exception_ptr ChunkClient::settle() {
  {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return changes_under_way_ == 0; });
  }
  return undelivered_.take();
}

void ChunkClient::close() noexcept {
  {
    std::unique_lock lock(mutex_);
    open_ = false;
    ended_.wait(lock, [&] { return under_way_ == 0; });
    store_.reset();
  }
  (void)undelivered_.take();
}

}  // namespace outcore::dio
