#include "outcore/trace.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <thread>
#include <unordered_map>
#include <utility>

#include "outcore/error.hpp"

// Everything here is either constant-initialised and trivially destructible, or allocated once and never
// freed, so that files closed by static destructors can still report.

namespace outcore::trace {
namespace {

constexpr std::size_t layers = std::size_t(Layer::count);
constexpr std::size_t ops = std::size_t(Op::count);

// ---- counters

struct Cell {
  std::atomic<std::uint64_t> failed, nanoseconds, waited_ns, sequential;
  std::array<std::atomic<std::uint64_t>, size_classes> by_size, bytes_by_size;
};

struct alignas(64) Shard {
  std::array<std::array<Cell, ops>, layers> cells;
};

// The first threads have a shard each, which no other thread writes: an atomic addition would wait until the
// record that was just copied is in the cache. The other threads share the last shards. A reader adds the
// shards up; those never used take no memory. Measured: [M8].
constexpr std::uint32_t own_shards = 56, common_shards = 8;
constinit std::array<Shard, own_shards + common_shards> g_shards{};
constinit std::atomic<std::uint64_t> g_process_start_ns{0};

std::uint64_t get(const std::atomic<std::uint64_t>& from) noexcept {
  return from.load(std::memory_order_relaxed);
}

/// The cell in which a thread counts.
struct Counting {
  Counting(std::uint32_t thread, Layer layer, Op op) noexcept
      : own(thread < own_shards),
        cell(g_shards[own ? thread : own_shards + thread % common_shards]
                 .cells[std::size_t(layer)][std::size_t(op)]) {}

  void add(std::atomic<std::uint64_t>& to, std::uint64_t value) const noexcept {
    if (own)
      to.store(get(to) + value, std::memory_order_relaxed);
    else if (value)
      to.fetch_add(value, std::memory_order_relaxed);
  }

  const bool own;
  Cell& cell;
};

std::size_t size_class(std::int64_t bytes) noexcept {
  std::size_t index = 0;
  while (index < size_class_bounds.size() && bytes >= size_class_bounds[index]) ++index;
  return index;
}

std::uint64_t duration_ns(const Event& event) noexcept {
  return event.end_ns > event.start_ns ? event.end_ns - event.start_ns : 0;
}

void count(const Event& event) noexcept {
  const Counting by(event.thread, event.layer, event.op);
  const std::size_t index = size_class(event.bytes);
  by.add(by.cell.by_size[index], 1);
  by.add(by.cell.bytes_by_size[index], std::uint64_t(std::max<std::int64_t>(event.bytes, 0)));
  by.add(by.cell.failed, event.failed);
  by.add(by.cell.nanoseconds, duration_ns(event) * event.stands_for);
  by.add(by.cell.waited_ns, event.waited_ns * event.stands_for);
  by.add(by.cell.sequential, event.sequential);
}

void add_to(Counter& sum, const Cell& cell) noexcept {
  sum.failed += get(cell.failed);
  sum.nanoseconds += get(cell.nanoseconds);
  sum.waited_ns += get(cell.waited_ns);
  sum.sequential += get(cell.sequential);
  for (std::size_t i = 0; i < size_classes; ++i) {
    const std::uint64_t count = get(cell.by_size[i]), bytes = get(cell.bytes_by_size[i]);
    sum.by_size[i] += count;
    sum.bytes_by_size[i] += bytes;
    sum.count += count;
    sum.bytes += bytes;
  }
}

// ---- time in which the device is busy

/// Transfers begin and end in any order on any thread: `sum` is the sum of the moments at which the number
/// under way fell to zero less the sum of those at which it left zero; the order of a sum does not matter.
struct alignas(64) BusyClock {
  std::atomic<std::int64_t> under_way, sum;
  std::atomic<std::int64_t> not_counted;  // busy time before the last reset

  /// Far from zero, so that the size of a sum tells whether the end of a busy time is missing.
  static std::int64_t now() noexcept { return std::int64_t(now_ns()) + far; }
  static constexpr std::int64_t far = std::int64_t(1) << 61;

  // The clock is read inside the time under way, so that two busy times never overlap.
  std::uint64_t begins() noexcept {
    const bool first = under_way.fetch_add(1) == 0;
    const std::int64_t begin = now();
    if (first) sum.fetch_sub(begin);
    return std::uint64_t(begin - far);
  }
  std::uint64_t ends() noexcept {
    const std::int64_t end = now();
    if (under_way.fetch_sub(1) == 1) sum.fetch_add(end);
    return std::uint64_t(end - far);
  }
  [[nodiscard]] std::int64_t total_ns() const noexcept {
    std::int64_t value = sum.load();
    if (value < -far / 2) value += now();
    if (value >= -far / 2) return value;
    std::this_thread::yield();  // a busy time has begun before another thread has added the end of the last
    return total_ns();
  }
  [[nodiscard]] std::uint64_t busy_ns() const noexcept {
    return std::uint64_t(std::max<std::int64_t>(total_ns() - not_counted.load(), 0));
  }
};

constinit std::array<BusyClock, 2> g_busy{};  // reads, writes

// ---- threads

constinit std::atomic<std::uint32_t> g_threads{1};
constinit thread_local std::uint32_t t_thread = std::numeric_limits<std::uint32_t>::max();

std::uint32_t thread_number() noexcept {
  if (t_thread == std::numeric_limits<std::uint32_t>::max()) {
    const bool main = syscall(SYS_gettid) == getpid();
    t_thread = main ? 0 : g_threads.fetch_add(1, std::memory_order_relaxed);
  }
  return t_thread;
}

// ---- events

struct StoredEvent {
  Event event;
  std::uint32_t generation;  // of the buffer once the event is complete; through atomic_ref, zeroed at first
};
static_assert(sizeof(StoredEvent) == 64);

/// Zeroed room for events, which takes physical memory as it is filled.
StoredEvent* map(std::size_t count) {
  if (count > std::numeric_limits<std::size_t>::max() / sizeof(StoredEvent)) throw std::bad_alloc();
  void* memory =
      mmap(nullptr, count * sizeof(StoredEvent), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<StoredEvent*>(memory);
}

struct EventBuffer {
  StoredEvent* events;
  std::size_t capacity;
  std::uint32_t generation = 1;         // the next one after a fork: empties the buffer without touching it
  std::atomic<std::uint64_t> taken{0};  // events that came; beyond capacity: dropped

  explicit EventBuffer(std::size_t count) : events(map(count)), capacity(count) {}
  ~EventBuffer() { munmap(events, capacity * sizeof(StoredEvent)); }
  EventBuffer(const EventBuffer&) = delete;
  EventBuffer& operator=(const EventBuffer&) = delete;
};

constinit std::mutex g_events_mutex;                // enabling, disabling and reading; never recording
EventBuffer* g_buffer = nullptr;                    // under the mutex; outlives disabling, for its readers
constinit std::atomic<EventBuffer*> g_recording{};  // what record() stores into, null when disabled
constinit std::atomic<std::uint32_t> g_writers{0};  // threads inside store()

void store(const Event& event) noexcept {
  if (!g_recording.load(std::memory_order_relaxed)) return;
  g_writers.fetch_add(1);  // sequentially consistent with stop_writers()
  if (EventBuffer* buffer = g_recording.load()) {
    const std::uint64_t index = buffer->taken.fetch_add(1, std::memory_order_relaxed);
    if (index < buffer->capacity) {
      StoredEvent& stored = buffer->events[index];
      stored.event = event;
      std::atomic_ref(stored.generation).store(buffer->generation, std::memory_order_release);
    }
  }
  g_writers.fetch_sub(1, std::memory_order_release);
}

/// After it no thread uses the buffer, now or later.
void stop_writers() noexcept {
  g_recording.store(nullptr);
  while (g_writers.load() != 0) std::this_thread::yield();
}

// ---- file names

constexpr std::size_t max_files = 1 << 16;

struct Names {
  std::vector<std::string> by_id{""};
  std::unordered_map<std::string, std::uint32_t> ids{{"", 0}};
};

constinit std::mutex g_names_mutex;

Names& names() {
  static Names* const table = new Names;
  return *table;
}

// ---- fork and start

void before_fork() {
  g_events_mutex.lock();
  g_names_mutex.lock();
}

void after_fork_in_parent() {
  g_names_mutex.unlock();
  g_events_mutex.unlock();
}

void after_fork_in_child() {
  g_writers.store(0);  // threads that record stayed in the parent
  for (BusyClock& clock : g_busy) {
    clock.under_way.store(0);
    clock.sum.store(0);
  }
  if (g_buffer) {
    ++g_buffer->generation;
    g_buffer->taken.store(0);
  }
  reset_counters();
  g_process_start_ns.store(now_ns(), std::memory_order_relaxed);
  after_fork_in_parent();
}

[[maybe_unused]] const int g_started = [] {
  g_process_start_ns.store(now_ns(), std::memory_order_relaxed);
  return pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}();

}  // namespace

const char* name(Layer layer) noexcept {
  constexpr std::array<const char*, layers> names{"file", "device"};
  return layer < Layer::count ? names[std::size_t(layer)] : "?";
}

const char* name(Op op) noexcept {
  constexpr std::array<const char*, ops> names{"open",  "close",      "remove",      "read",
                                               "write", "read_async", "write_async", "wait",
                                               "flush", "truncate",   "preallocate", "stat"};
  return op < Op::count ? names[std::size_t(op)] : "?";
}

std::uint64_t now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::uint64_t(now.tv_sec) * 1'000'000'000u + std::uint64_t(now.tv_nsec);
}

std::uint32_t file_id(const std::string& path) {
  const std::lock_guard lock(g_names_mutex);
  Names& table = names();
  if (const auto found = table.ids.find(path); found != table.ids.end()) return found->second;
  const bool full = table.by_id.size() >= max_files;
  const std::string name = full ? other_files : path;
  const auto [entry, added] = table.ids.try_emplace(name, std::uint32_t(table.by_id.size()));
  if (added) table.by_id.push_back(name);
  return entry->second;
}

std::string file_name(std::uint32_t id) {
  const std::lock_guard lock(g_names_mutex);
  const Names& table = names();
  return id < table.by_id.size() ? table.by_id[id] : std::string();
}

bool events_enabled() noexcept {
  return g_recording.load(std::memory_order_relaxed) != nullptr;
}

std::uint8_t timed_for() noexcept {
  constexpr std::uint32_t all_of_the_first = 256;
  constexpr std::uint32_t one_in = 17;  // a prime, so that it does not match periods of a caller
  thread_local constinit std::uint32_t count = 0;
  if (count < all_of_the_first) return ++count, 1;
  if (events_enabled()) return 1;
  if (++count < all_of_the_first + one_in) return 0;
  count = all_of_the_first;
  return one_in;
}

void record(Event event) noexcept {
  if (event.layer >= Layer::count || event.op >= Op::count) return;
  event.thread = thread_number();
  if (event.op != Op::read_async && event.op != Op::write_async) event.waited_ns = duration_ns(event);
  count(event);
  store(event);
}

void count(Layer layer, Op op, std::int64_t bytes, bool sequential) noexcept {
  if (layer >= Layer::count || op >= Op::count) return;
  const Counting by(thread_number(), layer, op);
  const std::size_t index = size_class(bytes);
  by.add(by.cell.by_size[index], 1);
  by.add(by.cell.bytes_by_size[index], std::uint64_t(bytes));
  if (sequential) by.add(by.cell.sequential, 1);
}

std::uint64_t transfer_begins(bool write) noexcept {
  return g_busy[write].begins();
}
std::uint64_t transfer_ends(bool write) noexcept {
  return g_busy[write].ends();
}

void add_busy(bool write, std::uint64_t nanoseconds) noexcept {
  g_busy[write].sum.fetch_add(std::int64_t(nanoseconds), std::memory_order_relaxed);
}

void add_waited(Layer layer, Op op, std::uint64_t nanoseconds) noexcept {
  if (layer >= Layer::count || op >= Op::count) return;
  const Counting by(thread_number(), layer, op);
  by.add(by.cell.waited_ns, nanoseconds);
}

Snapshot snapshot() noexcept {
  Snapshot result;
  for (const Shard& shard : g_shards)
    for (std::size_t layer = 0; layer < layers; ++layer)
      for (std::size_t op = 0; op < ops; ++op) add_to(result.counters[layer][op], shard.cells[layer][op]);
  result.device_read_busy_ns = g_busy[0].busy_ns();
  result.device_write_busy_ns = g_busy[1].busy_ns();
  result.taken_ns = now_ns();
  result.process_start_ns = get(g_process_start_ns);
  return result;
}

void reset_counters() noexcept {
  const auto zero = [](std::atomic<std::uint64_t>& value) { value.store(0, std::memory_order_relaxed); };
  for (Shard& shard : g_shards)
    for (auto& layer : shard.cells)
      for (Cell& cell : layer) {
        for (auto* value : {&cell.failed, &cell.nanoseconds, &cell.waited_ns, &cell.sequential}) zero(*value);
        for (auto& value : cell.by_size) zero(value);
        for (auto& value : cell.bytes_by_size) zero(value);
      }
  for (BusyClock& clock : g_busy) clock.not_counted.store(clock.total_ns());
}

void enable_events(std::size_t capacity) {
  const auto error = [&](int code, const char* detail) {
    return Error(code, {.attempted = "allocation of a trace buffer",
                        .detail = std::to_string(capacity) + " events of 64 bytes; " + detail});
  };
  if (capacity == 0) throw error(EINVAL, "at least one is needed");
  std::unique_ptr<EventBuffer> fresh;
  try {
    fresh = std::make_unique<EventBuffer>(capacity);
  } catch (const std::bad_alloc&) {
    throw error(ENOMEM, "ask for fewer");
  }
  const std::lock_guard lock(g_events_mutex);
  stop_writers();
  delete std::exchange(g_buffer, fresh.release());
  g_recording.store(g_buffer);
}

void disable_events() noexcept {
  const std::lock_guard lock(g_events_mutex);
  stop_writers();
}

std::vector<Event> events() {
  const std::lock_guard lock(g_events_mutex);
  std::vector<Event> result;
  if (!g_buffer) return result;
  const std::size_t used = std::min<std::uint64_t>(g_buffer->taken.load(), g_buffer->capacity);
  result.reserve(used);
  for (StoredEvent& stored : std::span(g_buffer->events, used))
    if (std::atomic_ref(stored.generation).load(std::memory_order_acquire) == g_buffer->generation)
      result.push_back(stored.event);
  return result;
}

std::uint64_t dropped_events() noexcept {
  const std::lock_guard lock(g_events_mutex);
  if (!g_buffer) return 0;
  const std::uint64_t taken = g_buffer->taken.load();
  return taken > g_buffer->capacity ? taken - g_buffer->capacity : 0;
}

}  // namespace outcore::trace
