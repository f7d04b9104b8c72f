// Reads and writes of a file: by the page cache or by an engine, and their reports to the trace.
#include <sys/statvfs.h>

#include <cerrno>

#include "base/file_size_limit.hpp"
#include "device/file_state.hpp"

namespace outcore::device {
namespace {

using Kind = Operation::Kind;
using FileSpace = struct statvfs;

constexpr std::int64_t at_once_bytes = 128 << 10;  // nonblocking reads: copied in some ten microseconds

trace::Op op_of(const Transfer& transfer) {
  if (transfer.blocking()) return transfer.is_write() ? trace::Op::write : trace::Op::read;
  return transfer.is_write() ? trace::Op::write_async : trace::Op::read_async;
}

std::int64_t size_of(std::span<const iovec> list) {
  std::int64_t size = 0;
  for (const iovec& part : list) size += static_cast<std::int64_t>(part.iov_len);
  return size;
}

std::string needed_and_free(std::int64_t needed_bytes, std::int64_t free_bytes) {
  std::string text = "needed: " + std::to_string(needed_bytes) + " bytes";
  if (free_bytes >= 0) text += ", free: " + std::to_string(free_bytes) + " bytes";
  return text;
}

}  // namespace

std::int64_t File::State::blocking(Kind kind, std::span<const iovec> list, std::int64_t offset,
                                   const trace::Asker& asker) {
  check_request(kind, list, offset);
  const std::int64_t size = size_of(list);
  const auto choice = policy->blocking(kind, offset, size);
  const std::uint8_t stands_for = trace::events_enabled() ? 1 : choice.stands_for;
  const bool write = kind == Kind::write;
  const bool sequential = follows(kind, offset, size);
  const auto space = write ? ahead->before_write(offset, size) : ByteRange{};
  const std::int64_t new_from = write ? refused->before_write(offset) : 0;
  const std::uint64_t start_ns = stands_for > 0 ? trace::transfer_begins(write) : 0;
  if (choice.io_path == IoPath::buffered && list.size() == 1 && space.size_bytes == 0 && !options.engine &&
      moved_at_once(kind, list[0], offset)) {
    const trace::Op op = write ? trace::Op::write : trace::Op::read;
    if (write) {
      refused->written(offset + size);
      SpaceInUse::grown();
    }
    count_moved({.start_ns = start_ns,
                 .offset = offset,
                 .bytes = size,
                 .op = op,
                 .sequential = sequential,
                 .stands_for = stands_for},
                asker);
    return size;
  }
  Transfer transfer(kind, choice.io_path, target(), list, offset, *this, true);
  transfer.asker = asker;
  transfer.stands_for = stands_for;
  transfer.sequential = sequential;
  transfer.start_ns = start_ns;
  transfer.new_from = new_from;
  if (space.size_bytes > 0) transfer.reserve(space.offset, space.size_bytes);
  while (const Operation* operation = transfer.next()) transfer.result(run(*operation));
  if (transfer.errno_value() != 0) throw error_of(transfer);
  if (!write && transfer.missed()) policy->missed(transfer, trace::now_ns() - transfer.start_ns);
  return transfer.moved_bytes();
}

/// One plain system call moves nearly every request of one buffer through the page cache, in fewer steps than
/// a transfer. If it does not move all bytes, the transfer begins as if nothing had been done. Measured:
/// [M13].
bool File::State::moved_at_once(Kind kind, const iovec& entry, std::int64_t offset,
                                bool cached_only) const noexcept {
  const auto size = static_cast<std::int64_t>(entry.iov_len);
  return run({.kind = kind,
              .cached_only = cached_only,
              .copies = true,
              .fd = buffered.get(),
              .offset = offset,
              .size_bytes = size,
              .list = &entry,
              .list_count = 1}) == size;
}

/// A small read of bytes in the page cache is complete when the call returns: the copy takes less time than
/// the submission of a request to an engine. Measured: [M38].
bool File::State::copied(const iovec& entry, std::int64_t offset, const trace::Asker& asker) {
  check_request(Kind::read, {&entry, 1}, offset);
  const auto size = static_cast<std::int64_t>(entry.iov_len);
  if (!plain || size > at_once_bytes || !policy->copies_at_once(offset, size)) return false;
  const std::uint8_t stands_for = trace::timed_for();
  const std::uint64_t start_ns = stands_for > 0 ? trace::transfer_begins(false) : 0;
  if (!moved_at_once(Kind::read, entry, offset, true)) {
    if (stands_for > 0) trace::transfer_ends(false);
    return false;
  }
  count_moved({.start_ns = start_ns,
               .offset = offset,
               .bytes = size,
               .op = trace::Op::read_async,
               .sequential = follows(Kind::read, offset, size),
               .stands_for = stands_for},
              asker);
  return true;
}

Request File::State::nonblocking(Kind kind, std::span<const iovec> list, std::int64_t offset,
                                 const trace::Asker& asker, File::Then then) {
  check_request(kind, list, offset);
  const IoPath io_path = policy->nonblocking(kind, offset, size_of(list));
  auto transfer = std::make_shared<Transfer>(kind, io_path, target(), list, offset, *this, false);
  transfer->keep(std::shared_ptr<Transfer::Owner>(shared_from_this(), this));
  starts(*transfer);
  transfer->asker = asker;
  if (then) {
    transfer->tell_nobody();
    transfer->then = [told = std::move(then)](Transfer& complete) {
      if (complete.errno_value() == 0) return told(complete.moved_bytes(), nullptr);
      const Error error = complete.owner().error_of(complete);
      told(0, &error);
    };
  }
  under_way.fetch_add(1, std::memory_order_relaxed);
  try {
    engine().submit(transfer);
  } catch (...) {
    ended();
    trace::transfer_ends(transfer->is_write());
    throw;
  }
  waited(*transfer, trace::now_ns() - transfer->start_ns);  // in this call
  return Request(std::move(transfer));
}

bool File::State::follows(Kind kind, std::int64_t offset, std::int64_t size) noexcept {
  auto& last_end = kind == Kind::write ? write_end : read_end;
  const bool follows = last_end.load(std::memory_order_relaxed) == offset;
  last_end.store(offset + size, std::memory_order_relaxed);
  return follows;
}

void File::State::starts(Transfer& transfer) noexcept {
  const Kind kind = transfer.is_write() ? Kind::write : Kind::read;
  transfer.sequential = follows(kind, transfer.offset(), transfer.size_bytes());
  transfer.start_ns = trace::transfer_begins(transfer.is_write());
  if (!transfer.is_write()) return;
  transfer.new_from = refused->before_write(transfer.offset());
  const auto range = ahead->before_write(transfer.offset(), transfer.size_bytes());
  if (range.size_bytes > 0) transfer.reserve(range.offset, range.size_bytes);
}

/// Completes the event with the facts of the file, and counts the time of the requests it stands for as busy.
void File::State::report(trace::Event event, const trace::Asker& asker) const noexcept {
  event.layer = trace::Layer::device;
  event.file = trace_file;
  if (event.stands_for > 1) {
    const bool write = event.op == trace::Op::write || event.op == trace::Op::write_async;
    trace::add_busy(write, (event.stands_for - 1u) * (event.end_ns - event.start_ns));
  }
  trace::record(event);
  if (asker.layer == trace::Layer::device) return;
  event.layer = asker.layer;
  event.sequential = asker.sequential;
  trace::record(event);
}

/// Reports the bytes of one call, which ends now if it was timed.
void File::State::count_moved(trace::Event event, const trace::Asker& asker) const noexcept {
  if (event.stands_for > 0) {
    event.end_ns = trace::transfer_ends(event.op == trace::Op::write);
    if (event.op == trace::Op::read_async) event.waited_ns = event.end_ns - event.start_ns;
    return report(event, asker);
  }
  trace::count(trace::Layer::device, event.op, event.bytes, event.sequential);
  if (asker.layer != trace::Layer::device) trace::count(asker.layer, event.op, event.bytes, asker.sequential);
}

void File::State::completed(Transfer& transfer) noexcept {
  if (transfer.errno_value() == ENOSPC) {
    FileSpace space{};
    if (fstatvfs(buffered.get(), &space) == 0)
      transfer.free_bytes = static_cast<std::int64_t>(space.f_bavail * space.f_frsize);
  }
  if (transfer.is_write()) {
    const std::int64_t end = transfer.offset() + transfer.moved_bytes();
    if (transfer.errno_value() == 0) refused->written(end);
    refused->give_back(transfer.errno_value(), transfer.new_from, end);
    SpaceInUse::grown();
  }
  policy->completed(transfer);
  const std::uint64_t now = transfer.stands_for > 0 ? trace::transfer_ends(transfer.is_write()) : 0;
  report({.start_ns = transfer.start_ns,
          .end_ns = now,
          .waited_ns = transfer.blocking() ? now - transfer.start_ns : 0,
          .offset = transfer.offset(),
          .bytes = transfer.moved_bytes(),
          .op = op_of(transfer),
          .failed = transfer.errno_value() != 0,
          .sequential = transfer.sequential,
          .stands_for = transfer.stands_for},
         transfer.asker);
  if (!transfer.blocking() && transfer.errno_value() != 0 && transfer.is_write())
    undelivered.watch(transfer.shared_from_this());
}

/// Only now: a thread that waits until the file is quiet may look at its requests next.
void File::State::ended() noexcept {
  under_way.fetch_sub(1, std::memory_order_release);
  under_way.notify_all();
}

Error File::State::error_of(const Transfer& transfer) const {
  ErrorContext context{.attempted = transfer.is_write() ? "write" : "read",
                       .path = path,
                       .offset = transfer.offset() + transfer.moved_bytes(),
                       .size_bytes = transfer.size_bytes() - transfer.moved_bytes()};
  if (transfer.errno_value() == ENOSPC)
    context.detail = needed_and_free(context.size_bytes, transfer.free_bytes);
  if (transfer.is_write() && transfer.errno_value() == EFBIG) context.detail = file_size_limit(EFBIG);
  return {transfer.errno_value(), std::move(context)};
}

Error File::State::not_allocated(int error, const char* attempted, std::int64_t offset,
                                 std::int64_t size_bytes) const {
  ErrorContext context{.attempted = attempted,
                       .path = path,
                       .offset = offset,
                       .size_bytes = size_bytes,
                       .detail = file_size_limit(error)};
  FileSpace space{};
  if (error == ENOSPC && fstatvfs(buffered.get(), &space) == 0)
    context.detail = needed_and_free(size_bytes, static_cast<std::int64_t>(space.f_bavail * space.f_frsize));
  return {error, std::move(context)};
}

void File::State::waited(const Transfer& transfer, std::uint64_t nanoseconds) noexcept {
  trace::add_waited(trace::Layer::device, op_of(transfer), nanoseconds);
  if (transfer.asker.layer != trace::Layer::device)
    trace::add_waited(transfer.asker.layer, op_of(transfer), nanoseconds);
}

}  // namespace outcore::device
