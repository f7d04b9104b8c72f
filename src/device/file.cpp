#include "device/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <vector>

#include "base/undelivered.hpp"
#include "device/cache_policy.hpp"
#include "device/descriptor.hpp"
#include "device/opening.hpp"
#include "device/refused_space.hpp"
#include "device/space_ahead.hpp"
#include "device/transfer.hpp"
#include "outcore/error.hpp"
#include "outcore/trace.hpp"

namespace outcore::device {
namespace {

using Kind = Operation::Kind;
using FileStatus = struct stat;
using FileSpace = struct statvfs;

constexpr std::uint32_t page_bytes = 4096;
constexpr std::int64_t at_once_bytes = 128 << 10;  // nonblocking reads: copied in some ten microseconds

trace::Op op_of(const Transfer& transfer) {
  if (transfer.blocking()) return transfer.is_write() ? trace::Op::write : trace::Op::read;
  return transfer.is_write() ? trace::Op::write_async : trace::Op::read_async;
}

iovec entry_for(std::span<const std::byte> buffer) {
  return {const_cast<std::byte*>(buffer.data()), buffer.size()};  // iovec has no const form
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

struct File::State final : Transfer::Owner, std::enable_shared_from_this<File::State> {
  std::string path;
  OpenOptions options;
  Descriptor buffered, direct;
  DirectAlign align;
  std::uint32_t trace_file = 0;
  std::optional<CachePolicy> policy;    ///< once the descriptors are open
  std::optional<SpaceAhead> ahead;      ///< the same
  std::optional<RefusedSpace> refused;  ///< the same

  bool plain = true;  ///< neither an engine of the caller nor an emulated disk is to see what is read
  std::atomic<std::int64_t> read_end{-1}, write_end{-1};  ///< where the last request of the kind ended
  std::atomic<std::uint32_t> under_way{0};                ///< nonblocking requests not complete yet
  Undelivered undelivered;                                ///< errors of nonblocking writes

  State(std::string name, const OpenOptions& wanted);
  void open_direct(const FileStatus& about);
  [[nodiscard]] FileStatus status_of(int fd) const;

  [[nodiscard]] Engine& engine() const { return options.engine ? *options.engine : default_engine(); }
  /// In the calling thread. The engine of the process is not started for that.
  [[nodiscard]] std::int64_t run(const Operation& operation) const noexcept {
    return options.engine ? options.engine->run(operation) : run_by_default(operation);
  }
  [[nodiscard]] Target target() const {
    return {buffered.get(), direct.get(), align.memory, std::max(align.offset, page_bytes)};
  }
  void check(const char* attempted, std::int64_t offset = 0, std::int64_t size = 0) const;
  void check_request(Kind kind, std::span<const iovec> list, std::int64_t offset) const;

  std::int64_t blocking(Kind kind, std::span<const iovec> list, std::int64_t offset,
                        const trace::Asker& asker = {});
  Request nonblocking(Kind kind, std::span<const iovec> list, std::int64_t offset,
                      const trace::Asker& asker = {}, File::Then then = {});
  void wait_for_all() const;
  void flush();
  void settle();
  void close();

  /// Noted in the order in which requests are made, for the trace: whether this one goes on where the last of
  /// its kind ended.
  [[nodiscard]] bool follows(Kind kind, std::int64_t offset, std::int64_t size) noexcept;
  void starts(Transfer& transfer) noexcept;
  [[nodiscard]] bool moved_at_once(Kind kind, const iovec& entry, std::int64_t offset,
                                   bool cached_only = false) const noexcept;
  [[nodiscard]] bool copied(const iovec& entry, std::int64_t offset, const trace::Asker& asker);
  void count_moved(trace::Event event, const trace::Asker& asker) const noexcept;
  void report(trace::Event event, const trace::Asker& asker) const noexcept;
  void completed(Transfer& transfer) noexcept override;
  void ended() noexcept override;
  [[nodiscard]] Error error_of(const Transfer& transfer) const override;
  void waited(const Transfer& transfer, std::uint64_t nanoseconds) noexcept override;
  [[nodiscard]] Error not_allocated(int error, const char* attempted, std::int64_t offset,
                                    std::int64_t size_bytes) const;

  /// Runs `body`, which returns 0 or an error number, counting and timing it as `op`.
  template <class Body>
  std::int64_t traced(trace::Op op, std::int64_t bytes, Body body);
};

// ---- opening

File::State::State(std::string name, const OpenOptions& wanted) : path(std::move(name)), options(wanted) {
  if (options.read_only && options.truncate)
    throw Error(EINVAL,
                {.attempted = "open", .path = path, .detail = "truncate and read_only exclude each other"});
  if (options.engine) options.engine->origin().check("open a file with an I/O engine");
  const int access = options.read_only ? O_RDONLY : O_RDWR;
  const bool create = options.create && !options.read_only;
  const bool emulated = !options.engine && !emulation().empty();
  plain = !options.engine && !emulated;
  if (emulated) static_cast<void>(default_engine());  // it may be refused
  buffered = open_descriptor(path, options,
                             access | (create ? O_CREAT : 0) | (options.truncate ? O_TRUNC : 0) |
                                 (create && options.exclusive ? O_EXCL : 0));
  if (!buffered) throw Error(errno, {.attempted = "open", .path = path});
  check_opened(path, options, buffered.get());
  if (options.page_cache != PageCache::buffered) open_direct(status_of(buffered.get()));
  if (options.unlink_after_open) unlink_opened(path, options);
  options.directory = -1;  // it is the caller's
  trace_file = trace::file_id(path);
  policy.emplace(options, buffered.get(), trace_file);
  ahead.emplace(options, buffered.get());
  refused.emplace(buffered.get());
}

/// A second descriptor of the same file, if its file system can.
void File::State::open_direct(const FileStatus& about) {
  align = direct_align(buffered.get());
  if (align.offset == 0) return;
  direct = open_descriptor(path, options, (options.read_only ? O_RDONLY : O_RDWR) | O_DIRECT);
  if (!direct) return;
  const FileStatus again = status_of(direct.get());
  if (again.st_dev != about.st_dev || again.st_ino != about.st_ino) direct.reset();  // renamed meanwhile
  // Ragged ends must not bring other pages into the page cache, least of all in one piece with theirs; and
  // what the kernel reads ahead of small requests (up to 8 MiB) would look as if it were in memory, so that
  // SequentialBuffer follows it, slower than the disk. CachePolicy takes it back for who reads without that.
  // Measured: [M7].
  if (options.page_cache != PageCache::buffered) posix_fadvise(buffered.get(), 0, 0, POSIX_FADV_RANDOM);
}

FileStatus File::State::status_of(int fd) const {
  FileStatus about{};
  if (fstat(fd, &about) != 0) throw Error(errno, {.attempted = "stat", .path = path});
  return about;
}

// ---- checks

void File::State::check(const char* attempted, std::int64_t offset, std::int64_t size) const {
  if (!buffered) throw Error(EBADF, {.attempted = attempted, .path = path, .detail = "the file is closed"});
  if (offset < 0 || size < 0)
    throw Error(EINVAL, {.attempted = attempted,
                         .path = path,
                         .detail = "negative " + std::string(offset < 0 ? "offset " : "size ") +
                                   std::to_string(offset < 0 ? offset : size)});
}

void File::State::check_request(Kind kind, std::span<const iovec> list, std::int64_t offset) const {
  const char* attempted = kind == Kind::write ? "write" : "read";
  check(attempted, offset);
  std::int64_t size = 0;
  for (const iovec& part : list) {
    // A size that was negative before it became unsigned, or a sum beyond 64 bits.
    if (__builtin_add_overflow(size, part.iov_len, &size)) check(attempted, offset, -1);
  }
  std::int64_t end = 0;
  if (__builtin_add_overflow(offset, size, &end))
    throw Error(EFBIG, {.attempted = attempted, .path = path, .offset = offset, .size_bytes = size});
  if (kind == Kind::write && options.read_only)
    throw Error(EBADF, {.attempted = attempted,
                        .path = path,
                        .offset = offset,
                        .size_bytes = size,
                        .detail = "the file was opened read-only"});
}

// ---- transfers

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
    if (write) refused->written(offset + size);
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

/// One plain call moves nearly every request of one buffer through the page cache, in fewer steps than a
/// transfer. Where it does not move all, the transfer begins as if nothing had been done.
/// Measured: [M13].
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

/// A small read of what is in the page cache is complete when the call returns: the copy takes less time than
/// an engine needs to take a request. Measured: [M38].
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
    under_way.fetch_sub(1, std::memory_order_relaxed);
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

/// Completes the event with what is known of the file, and counts the time of those it stands for as busy.
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

/// Reports what one call has moved, which ends now if it was timed.
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

/// Only now: who waits for the file to be quiet may look at its requests next.
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
  return {transfer.errno_value(), std::move(context)};
}

Error File::State::not_allocated(int error, const char* attempted, std::int64_t offset,
                                 std::int64_t size_bytes) const {
  ErrorContext context{.attempted = attempted, .path = path, .offset = offset, .size_bytes = size_bytes};
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

// ---- the file as a whole

void File::State::wait_for_all() const {
  Burst::begin_now();
  for (;;) {
    const std::uint32_t count = under_way.load(std::memory_order_acquire);
    if (count == 0) return;
    under_way.wait(count, std::memory_order_acquire);
  }
}

template <class Body>
std::int64_t File::State::traced(trace::Op op, std::int64_t bytes, Body body) {
  const std::uint64_t start_ns = trace::now_ns();
  const std::int64_t result = body();
  const std::uint64_t end_ns = trace::now_ns();
  trace::record({.start_ns = start_ns,
                 .end_ns = end_ns,
                 .waited_ns = end_ns - start_ns,
                 .bytes = bytes,
                 .file = trace_file,
                 .op = op,
                 .layer = trace::Layer::device,
                 .failed = result != 0});
  return result;
}

void File::State::flush() {
  check("flush");
  wait_for_all();
  const std::int64_t synced = traced(trace::Op::flush, 0, [&] {
    std::int64_t result = -EINTR;
    for (int i = 0; i < 1000 && result == -EINTR; ++i)
      result = run({.kind = Kind::sync, .fd = buffered.get()});
    return result;
  });
  undelivered.raise();
  if (synced < 0) throw Error(static_cast<int>(-synced), {.attempted = "flush", .path = path});
}

void File::State::settle() {
  check("settle");
  wait_for_all();
  undelivered.raise();
}

void File::State::close() {
  if (!buffered) return;
  wait_for_all();
  const std::exception_ptr failure = undelivered.take();
  policy->stop();
  const auto closed = traced(trace::Op::close, 0, [&] {
    ahead->give_back();
    direct.reset();
    return buffered.reset();
  });
  if (failure) std::rethrow_exception(failure);
  if (closed != 0) throw Error(static_cast<int>(closed), {.attempted = "close", .path = path});
}

File::File(std::string path, const OpenOptions& options) {
  const std::uint64_t start_ns = trace::now_ns();
  state_ = {std::make_shared<State>(std::move(path), options), "use a file"};
  const std::uint64_t now = trace::now_ns();
  trace::record({.start_ns = start_ns,
                 .end_ns = now,
                 .waited_ns = now - start_ns,
                 .file = state_->trace_file,
                 .op = trace::Op::open,
                 .layer = trace::Layer::device});
}

File::~File() {
  try {
    if (state_ && state_.here()) state_->close();
  } catch (const Error&) {  // documented: call close() to see it
  }
}

File::File(File&&) noexcept = default;
File& File::operator=(File&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

std::int64_t File::read(std::span<std::byte> buffer, std::int64_t offset, const trace::Asker& asker) {
  const iovec entry = entry_for(buffer);
  return state_->blocking(Kind::read, {&entry, 1}, offset, asker);
}
std::int64_t File::read(std::span<const iovec> list, std::int64_t offset) {
  return state_->blocking(Kind::read, list, offset);
}
std::int64_t File::write(std::span<const std::byte> buffer, std::int64_t offset, const trace::Asker& asker) {
  const iovec entry = entry_for(buffer);
  return state_->blocking(Kind::write, {&entry, 1}, offset, asker);
}
std::int64_t File::write(std::span<const iovec> list, std::int64_t offset) {
  return state_->blocking(Kind::write, list, offset);
}
bool File::resident(std::int64_t offset, std::int64_t size_bytes) {
  return state_->options.page_cache != PageCache::direct && state_->buffered && size_bytes > 0 &&
         state_->policy->resident(offset, size_bytes);
}
bool File::write_is_copy(std::int64_t offset, std::size_t size_bytes) const {
  return state_->policy->nonblocking(Kind::write, offset, static_cast<std::int64_t>(size_bytes)) ==
         IoPath::buffered;
}
Request File::read_async(std::span<std::byte> buffer, std::int64_t offset, const trace::Asker& asker) {
  const iovec entry = entry_for(buffer);
  if (state_->copied(entry, offset, asker))
    return Request(std::make_shared<CompleteRequest>(static_cast<std::int64_t>(buffer.size())));
  return state_->nonblocking(Kind::read, {&entry, 1}, offset, asker);
}
bool File::copy_cached(std::span<std::byte> buffer, std::int64_t offset, const trace::Asker& asker) {
  return state_->copied(entry_for(buffer), offset, asker);
}
Request File::read_async(std::span<const iovec> list, std::int64_t offset) {
  return state_->nonblocking(Kind::read, list, offset);
}
Request File::write_async(std::span<const std::byte> buffer, std::int64_t offset, const trace::Asker& asker) {
  const iovec entry = entry_for(buffer);
  return state_->nonblocking(Kind::write, {&entry, 1}, offset, asker);
}
Request File::write_async(std::span<const iovec> list, std::int64_t offset) {
  return state_->nonblocking(Kind::write, list, offset);
}

void File::read_async(std::span<const iovec> list, std::int64_t offset, Then then) {
  (void)state_->nonblocking(Kind::read, list, offset, {}, std::move(then));
}
void File::write_async(std::span<const iovec> list, std::int64_t offset, Then then) {
  (void)state_->nonblocking(Kind::write, list, offset, {}, std::move(then));
}

void File::preallocate(std::int64_t size_bytes) {
  state_->check("preallocate", 0, size_bytes);
  if (size_bytes == 0) return;
  const auto error = state_->traced(trace::Op::preallocate, size_bytes,
                                    [&] { return posix_fallocate(state_->buffered.get(), 0, size_bytes); });
  if (error == 0) return state_->ahead->reserved(size_bytes);
  throw state_->not_allocated(static_cast<int>(error), "preallocate", -1, size_bytes);
}

bool File::reserve(std::int64_t offset, std::int64_t size_bytes) {
  state_->check("reserve", offset, size_bytes);
  if (size_bytes == 0) return true;
  const auto error = state_->traced(trace::Op::preallocate, size_bytes, [&] {
    return fallocate(state_->buffered.get(), FALLOC_FL_KEEP_SIZE, offset, size_bytes) == 0 ? 0 : errno;
  });
  if (error == EOPNOTSUPP || error == ENOSYS) return false;
  if (error != 0) throw state_->not_allocated(static_cast<int>(error), "reserve", offset, size_bytes);
  return true;
}

void File::truncate(std::int64_t length_bytes) {
  state_->check("truncate", 0, length_bytes);
  const auto result = state_->traced(trace::Op::truncate, 0, [&] {
    return ftruncate(state_->buffered.get(), length_bytes) == 0 ? 0 : errno;
  });
  if (result != 0)
    throw Error(static_cast<int>(result),
                {.attempted = "truncate", .path = state_->path, .size_bytes = length_bytes});
  state_->ahead->truncated(length_bytes);
  state_->refused->truncated(length_bytes);
}

bool File::punch(std::int64_t offset, std::int64_t size_bytes) {
  state_->check("punch", offset, size_bytes);
  if (size_bytes == 0) return true;
  const auto result = state_->traced(trace::Op::truncate, size_bytes, [&] {
    const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    return fallocate(state_->buffered.get(), mode, offset, size_bytes) == 0 ? 0 : errno;
  });
  if (result == EOPNOTSUPP || result == ENOSYS) return false;
  if (result != 0)
    throw Error(static_cast<int>(result),
                {.attempted = "punch", .path = state_->path, .offset = offset, .size_bytes = size_bytes});
  return true;
}

std::int64_t File::length() const {
  state_->check("stat");
  return state_->status_of(state_->buffered.get()).st_size;
}

std::int64_t File::space_bytes() const {
  constexpr std::int64_t unit_bytes = 512;  // of stat(2)
  state_->check("stat");
  return state_->status_of(state_->buffered.get()).st_blocks * unit_bytes;
}

bool File::eof(std::int64_t offset) const {
  state_->check("test for the end", offset);
  return offset >= length();
}

void File::flush() {
  state_->flush();
}
void File::settle() {
  state_->settle();
}

void File::close() {
  state_->close();
}
const std::string& File::path() const noexcept {
  return state_.get()->path;
}
bool File::direct_available() const noexcept {
  return static_cast<bool>(state_.get()->direct);
}

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0) throw Error(errno, {.attempted = "remove", .path = path});
}

}  // namespace outcore::device
