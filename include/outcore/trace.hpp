// I/O trace: counters that are always on, and events that are recorded on demand.
//
// Two layers report: `file` has the requests of the program (exclusive access files), `device` has those that
// reach the disk after combining, splitting and reading ahead. Source of the tables: the Pablo-based
// characterisations of the PASSION study (operation, count, time, volume; size classes; durations over time).
//
// Reporting an asynchronous operation: record() it as read_async or write_async when it completes, spanning
// submission to completion, and call add_waited() with the same layer and op for the time a caller was
// blocked in submitting it or waiting for it. The call that waited may also be recorded as Op::wait; the
// report does not add that time, which is counted already, to the I/O time.
//
// Safe from any thread and from static destructors. A forked child starts with zero counters and no events
// (recording stays enabled, names and numbers of files stay).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "outcore/api.h"

namespace outcore::trace {

enum class Layer : std::uint8_t { file, device, count };

enum class Op : std::uint8_t {
  open,
  close,
  remove,
  read,
  write,
  read_async,
  write_async,
  wait,
  flush,
  truncate,
  preallocate,
  stat,
  count
};

[[nodiscard]] OUTCORE_API const char* name(Layer layer) noexcept;
[[nodiscard]] OUTCORE_API const char* name(Op op) noexcept;

/// Size classes of reads and writes, upper bounds exclusive: <4 KiB, <64 KiB, <256 KiB, <1 MiB, <4 MiB, rest.
inline constexpr std::array<std::int64_t, 5> size_class_bounds{4 << 10, 64 << 10, 256 << 10, 1 << 20,
                                                               4 << 20};
inline constexpr std::size_t size_classes = size_class_bounds.size() + 1;

/// One completed operation; fixed size. Times are CLOCK_MONOTONIC nanoseconds. An asynchronous operation
/// spans submission to completion; `waited_ns` is the part of it in which the caller was blocked, as far as
/// it is known at completion (of a blocking operation the whole duration: filled in by record()).
struct Event {
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t waited_ns = 0;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::uint32_t file = 0;    ///< from file_id()
  std::uint32_t thread = 0;  ///< filled in by record(): 0 is the main thread
  Op op = Op::read;
  Layer layer = Layer::file;
  bool failed = false;
  bool sequential = false;  ///< starts where the previous request of this kind on this file ended
  /// How many requests the time of this one stands for in the counters: from timed_for(), if it was sampled.
  /// 0: not timed, start_ns and end_ns mean nothing.
  std::uint8_t stands_for = 1;
};

/// The layer on whose behalf a request of the device layer is made, and whether it is sequential in that
/// layer.
struct Asker {
  Layer layer = Layer::device;
  bool sequential = false;
};

struct Counter {
  std::uint64_t count = 0, failed = 0, nanoseconds = 0, waited_ns = 0, bytes = 0, sequential = 0;
  std::array<std::uint64_t, size_classes> by_size{};  ///< operations in each size class; their sum is `count`
  std::array<std::uint64_t, size_classes> bytes_by_size{};
};

/// All counters at one moment: `counters[layer][op]`.
struct Snapshot {
  std::array<std::array<Counter, std::size_t(Op::count)>, std::size_t(Layer::count)> counters{};
  /// Time in which at least one read, or write, of the device was under way: from transfer_begins() and
  /// _ends().
  std::uint64_t device_read_busy_ns = 0;
  std::uint64_t device_write_busy_ns = 0;
  std::uint64_t taken_ns = 0;
  std::uint64_t process_start_ns = 0;
};

[[nodiscard]] OUTCORE_API std::uint64_t now_ns() noexcept;

/// For a request known to be as quick as looking at the clock (it is served from memory): how many such
/// requests the time of this one stands for, so that most need not be timed. 0: do not time it. Always 1 for
/// the first few hundred of a thread, and while events are recorded.
/// Measured: [M14].
[[nodiscard]] OUTCORE_API std::uint8_t timed_for() noexcept;
[[nodiscard]] OUTCORE_API bool events_enabled() noexcept;

inline constexpr const char* other_files = "(other files)";

/// Number for a file name, the same for the same name; the name is kept for the report. Number 0 is "", no
/// file. Thread-safe. Memory is bounded: beyond 65535 names all further ones share the number of
/// `other_files`.
[[nodiscard]] OUTCORE_API std::uint32_t file_id(const std::string& path);
[[nodiscard]] OUTCORE_API std::string file_name(std::uint32_t id);

/// Counts an operation and, when events are enabled, stores it. Thread-safe, never blocks, never throws;
/// costs tens of nanoseconds. When the event buffer is full the event is dropped and counted as dropped.
OUTCORE_API void record(Event event) noexcept;

/// As record() of an event that was not timed, but cheaper.
OUTCORE_API void count(Layer layer, Op op, std::int64_t bytes, bool sequential) noexcept;

/// Adds to the time the caller was blocked on an operation already recorded or still under way.
OUTCORE_API void add_waited(Layer layer, Op op, std::uint64_t nanoseconds) noexcept;

/// The device layer calls these before and after each read and write, blocking or not, from any thread, so
/// that the trace knows when the disk is busy. Each begin has exactly one end, also when the transfer fails.
/// Both return the time, so that the clock is read once.
OUTCORE_API std::uint64_t transfer_begins(bool write) noexcept;
OUTCORE_API std::uint64_t transfer_ends(bool write) noexcept;
/// Busy time of requests that were not timed because another stands for them.
OUTCORE_API void add_busy(bool write, std::uint64_t nanoseconds) noexcept;

/// Totals of all operations before the call: numbers and bytes are exact; times of quick requests are
/// sampled.
[[nodiscard]] OUTCORE_API Snapshot snapshot() noexcept;
/// Counts that other threads make at the same time may be lost, or may restore the old value of a counter.
OUTCORE_API void reset_counters() noexcept;

/// Starts recording events into a new buffer of `capacity` records (64 bytes each, allocated here), dropping
/// the events recorded before. Throws Error(ENOMEM) if it cannot be allocated, Error(EINVAL) for 0.
OUTCORE_API void enable_events(std::size_t capacity);
OUTCORE_API void disable_events() noexcept;             ///< stops recording; the events stay readable
[[nodiscard]] OUTCORE_API std::vector<Event> events();  ///< in the order in which operations completed
[[nodiscard]] OUTCORE_API std::uint64_t dropped_events() noexcept;  ///< since enable_events

}  // namespace outcore::trace
