#include "device/sequential.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "device/passing_writes.hpp"
#include "device/read_ahead.hpp"
#include "device/write_behind.hpp"
#include "outcore/error.hpp"

namespace outcore::device {
namespace {

constexpr std::int64_t worth_a_call_bytes = 48 << 10;

/// Requests that begin where the one before ended.
class Succession {
 public:
  /// Whether a request at this offset would be the third in succession, or a later one.
  [[nodiscard]] bool reaches(std::int64_t offset) const noexcept { return offset == end_ && length_ >= 2; }
  /// A request has succeeded.
  void note(std::int64_t offset, std::int64_t bytes) noexcept {
    length_ = offset == end_ ? length_ + 1 : 1;
    end_ = offset + bytes;
  }

 private:
  std::int64_t end_ = -1;
  std::int64_t length_ = 0;
};

SequentialOptions checked(const SequentialOptions& options) {
  if (options.block_bytes < (64 << 10) || options.block_bytes % (64 << 10) != 0 || options.write_blocks < 2 ||
      options.read_blocks < 2 || options.small_bytes > options.block_bytes)
    throw Error(
        EINVAL,
        {.attempted = "combining of requests",
         .detail = "blocks must be at least two, of a multiple of 64 KiB, not smaller than requests"});
  return options;
}

}  // namespace

struct SequentialBuffer::State {
  File& file;
  const SequentialOptions options;
  WriteBehind behind;
  PassingWrites passing;
  ReadAhead ahead;
  Succession reads, writes;

  State(File& of, const SequentialOptions& wanted)
      : file(of),
        options(checked(wanted)),
        behind(of, options.block_bytes, options.write_blocks),
        ahead(of, options.block_bytes, options.read_blocks,
              [this](std::int64_t offset, std::int64_t size_bytes) {
                behind.settle(offset, size_bytes);
                return !passing.meet(offset, offset + size_bytes);
              }) {}

  /// Whether a read neither belongs to a run nor may find its bytes read ahead. Bytes in the page cache are
  /// read from there without a further copy, unless a system call costs more.
  [[nodiscard]] bool goes_past(std::int64_t offset, std::int64_t size_bytes) const {
    if (size_bytes > options.max_bytes) return true;
    if (!ahead.empty()) return false;
    return !reads.reaches(offset) || (size_bytes >= worth_a_call_bytes && file.resident(offset, size_bytes));
  }
  [[nodiscard]] bool small(std::int64_t size_bytes) const noexcept {
    return size_bytes <= static_cast<std::int64_t>(options.small_bytes);
  }
  std::int64_t read(std::span<std::byte> buffer, std::int64_t offset);
  void write(std::span<const std::byte> buffer, std::int64_t offset);
};

SequentialBuffer::SequentialBuffer(File& file, const SequentialOptions& options)
    : state_(std::make_unique<State>(file, options), "use a file") {}

SequentialBuffer::~SequentialBuffer() {
  try {
    if (state_ && state_.here()) drain();
  } catch (const Error&) {  // documented: call drain() to see it
  }
}

SequentialBuffer::SequentialBuffer(SequentialBuffer&&) noexcept = default;
SequentialBuffer& SequentialBuffer::operator=(SequentialBuffer&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

std::int64_t SequentialBuffer::State::read(std::span<std::byte> buffer, std::int64_t offset) {
  const auto size = static_cast<std::int64_t>(buffer.size());
  if (!behind.empty()) {
    if (behind.fetch(buffer, offset)) return size;
    behind.settle(offset, size);
  }
  if (goes_past(offset, size)) return file.read(buffer, offset);
  std::size_t done = ahead.fetch(buffer, offset);
  if (done == 0 && reads.reaches(offset)) {
    ahead.start(offset, buffer.size());
    done = ahead.fetch(buffer, offset);
  }
  if (done == buffer.size()) return size;
  const auto fetched = static_cast<std::int64_t>(done);
  return fetched + file.read(buffer.subspan(done), offset + fetched);
}

void SequentialBuffer::State::write(std::span<const std::byte> buffer, std::int64_t offset) {
  const auto size = static_cast<std::int64_t>(buffer.size());
  behind.check();
  const bool taken = small(size) && behind.take(buffer, offset);
  if (!taken && small(size) && writes.reaches(offset)) {
    behind.start(offset);
    behind.take(buffer, offset);
  } else if (!taken) {
    behind.settle(offset, size);
    file.write(buffer, offset);
  }
  ahead.update(buffer, offset);
}

std::int64_t SequentialBuffer::read(std::span<std::byte> buffer, std::int64_t offset) {
  const std::int64_t bytes = state_->read(buffer, offset);
  state_->reads.note(offset, bytes);
  return bytes;
}

std::int64_t SequentialBuffer::write(std::span<const std::byte> buffer, std::int64_t offset) {
  state_->write(buffer, offset);
  const auto bytes = static_cast<std::int64_t>(buffer.size());
  state_->writes.note(offset, bytes);
  return bytes;
}

bool SequentialBuffer::read_held(std::span<std::byte> buffer, std::int64_t offset) {
  if (!state_->behind.empty() || !state_->ahead.fetch_held(buffer, offset)) return false;
  state_->reads.note(offset, static_cast<std::int64_t>(buffer.size()));
  return true;
}

bool SequentialBuffer::write_held(std::span<const std::byte> buffer, std::int64_t offset) {
  const auto size = static_cast<std::int64_t>(buffer.size());
  if (!state_->small(size) || !state_->ahead.empty() || !state_->behind.take_held(buffer, offset))
    return false;
  state_->writes.note(offset, size);
  return true;
}

bool SequentialBuffer::read_passes(std::int64_t offset, std::int64_t size_bytes) {
  if (!state_->goes_past(offset, size_bytes)) return false;
  if (!state_->behind.empty()) state_->behind.settle(offset, size_bytes);
  state_->reads.note(offset, size_bytes);
  return true;
}

bool SequentialBuffer::write_passes(std::int64_t offset, std::int64_t size_bytes) {
  const WriteBehind& behind = state_->behind;
  const bool combined = behind.gathers(offset, size_bytes) || state_->writes.reaches(offset);
  if (state_->small(size_bytes) && (combined || !state_->ahead.empty())) return false;
  state_->behind.check();
  before_write(offset, size_bytes);
  state_->passing.began(offset, size_bytes);
  state_->writes.note(offset, size_bytes);
  return true;
}

void SequentialBuffer::write_passed(std::int64_t offset, std::int64_t size_bytes) noexcept {
  state_->passing.ended(offset, size_bytes);
}

void SequentialBuffer::before_read(std::int64_t offset, std::int64_t size_bytes) {
  state_->behind.settle(offset, size_bytes);
}

void SequentialBuffer::before_write(std::int64_t offset, std::int64_t size_bytes) {
  state_->behind.settle(offset, size_bytes);
  state_->ahead.forget(offset, size_bytes);
}

void SequentialBuffer::passes(std::int64_t offset, std::int64_t size_bytes, Request write) {
  state_->passing.began(offset, size_bytes, std::move(write));
}

void SequentialBuffer::drain() {
  state_->ahead.clear();
  state_->behind.drain();
}

void SequentialBuffer::flush() {
  drain();
  state_->file.flush();
}

std::int64_t SequentialBuffer::length() const {
  return std::max(state_->file.length(), state_->behind.end());
}

}  // namespace outcore::device
