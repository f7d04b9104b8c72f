// Small sequential requests, combined: write-behind and read-ahead over a File.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "device/file.hpp"
#include "outcore/origin.hpp"

namespace outcore::device {

struct SequentialOptions {
  std::size_t small_bytes = 512 << 10;  ///< larger writes go to the file directly
  std::int64_t max_bytes = 4 << 20;     ///< larger reads go to the file directly
  std::size_t block_bytes = 1 << 20;    ///< small requests reach the device in blocks of this size
  unsigned write_blocks = 3;            ///< one being filled, the others on their way to the file
  unsigned read_blocks = 8;             ///< one being used, the others read ahead
};

/// Blocking reads and writes of any size on a file, where runs of small sequential requests move at streaming
/// speed: written behind in large blocks, read ahead of the caller. A run is taken up at its third request;
/// everything else is the plain call on the file, without an additional copy or system call.
///
/// A read always sees the writes made here before it. A failed write-behind is thrown by the next write, by
/// a read that needs its bytes, by `drain` or by `flush`. Blocks come from the pool at the first run and
/// return to it at `drain`. One thread at a time; the file must outlive this object.
///
/// Requests made on the file itself (asynchronous ones, say) bypass this object: call `before_read` or
/// `before_write` on their range first, and `passes` with the request of a write. Then they may run while
/// other ranges are used here.
class SequentialBuffer {
 public:
  explicit SequentialBuffer(File& file, const SequentialOptions& options = {});
  ~SequentialBuffer();  ///< writes out the remaining bytes; an error is lost here, so call drain()
  SequentialBuffer(SequentialBuffer&&) noexcept;
  SequentialBuffer& operator=(SequentialBuffer&&) noexcept;

  /// As File::read and File::write.
  std::int64_t read(std::span<std::byte> buffer, std::int64_t offset);
  std::int64_t write(std::span<const std::byte> buffer, std::int64_t offset);

  /// As read and write, if the request can be served from memory alone, without waiting. Else false, and
  /// nothing was done.
  [[nodiscard]] bool read_held(std::span<std::byte> buffer, std::int64_t offset);
  [[nodiscard]] bool write_held(std::span<const std::byte> buffer, std::int64_t offset);

  /// Whether `read` (`write`) would only pass this request on to the file. If so it counts as read (written),
  /// and the caller may make it on the file, while other threads use this object. The caller must report when
  /// such a write has ended, failed or not.
  [[nodiscard]] bool read_passes(std::int64_t offset, std::int64_t size_bytes);
  [[nodiscard]] bool write_passes(std::int64_t offset, std::int64_t size_bytes);
  void write_passed(std::int64_t offset, std::int64_t size_bytes) noexcept;

  /// Makes the file hold every byte of the range that was written here. Does nothing if it does already.
  void before_read(std::int64_t offset, std::int64_t size_bytes);
  /// As before_read, and also drops bytes of the range that were read ahead.
  void before_write(std::int64_t offset, std::int64_t size_bytes);
  /// Notes a write under way on the file: its range is not read ahead until it is done.
  void passes(std::int64_t offset, std::int64_t size_bytes, Request write);

  /// Writes out everything, waits for it, drops bytes that were read ahead, and gives the blocks back. Call
  /// it before File::truncate or close. Throws the error of a failed write-behind.
  void drain();
  void flush();  ///< drain, then File::flush

  /// Length of the file, with bytes that are still to be written.
  [[nodiscard]] std::int64_t length() const;

  struct State;

 private:
  Owned<std::unique_ptr<State>> state_;
};

}  // namespace outcore::device
