#include "device/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/file_size_limit.hpp"
#include "base/uninterrupted.hpp"
#include "device/file_state.hpp"

namespace outcore::device {
namespace {

using Kind = Operation::Kind;

iovec entry_for(std::span<const std::byte> buffer) {
  return {const_cast<std::byte*>(buffer.data()), buffer.size()};  // iovec has no const form
}

}  // namespace

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
  outlive_file_size_limit();
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
  in_use.emplace(buffered.get(), !options.read_only);
}

/// A second descriptor of the same file, if its file system can.
void File::State::open_direct(const FileStatus& about) {
  align = direct_align(buffered.get());
  if (align.offset == 0) return;
  direct = open_descriptor(path, options, (options.read_only ? O_RDONLY : O_RDWR) | O_DIRECT);
  if (!direct) return;
  const FileStatus again = status_of(direct.get());
  if (again.st_dev != about.st_dev || again.st_ino != about.st_ino) direct.reset();  // renamed meanwhile
  // Unaligned ends must not bring other pages into the page cache, least of all in one piece with their own.
  // And data that the kernel reads ahead of small requests (up to 8 MiB) would look as if it were in memory,
  // so that SequentialBuffer would read it from there, slower than the disk. CachePolicy reverts this for
  // readers without SequentialBuffer. Measured: [M7].
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
    // A negative size that was converted to unsigned, or a sum beyond 64 bits.
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
    std::int64_t result = 0;
    (void)uninterrupted([&] {
      result = run({.kind = Kind::sync, .fd = buffered.get()});
      errno = static_cast<int>(-result);
      return result < 0 ? -1 : 0;
    });
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
  in_use.reset();
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
  const auto error = state_->traced(trace::Op::preallocate, size_bytes, [&] {
    const auto preallocated = [&] {
      errno = posix_fallocate(state_->buffered.get(), 0, size_bytes);
      return errno == 0 ? 0 : -1;
    };
    return uninterrupted(preallocated) == 0 ? 0 : errno;
  });
  SpaceInUse::grown();
  if (error == 0) return state_->ahead->reserved(size_bytes);
  throw state_->not_allocated(static_cast<int>(error), "preallocate", -1, size_bytes);
}

bool File::reserve(std::int64_t offset, std::int64_t size_bytes) {
  state_->check("reserve", offset, size_bytes);
  if (size_bytes == 0) return true;
  const auto error = state_->traced(trace::Op::preallocate, size_bytes, [&] {
    const auto reserved = [&] {
      return fallocate(state_->buffered.get(), FALLOC_FL_KEEP_SIZE, offset, size_bytes);
    };
    return uninterrupted(reserved) == 0 ? 0 : errno;
  });
  SpaceInUse::grown();
  if (error == EOPNOTSUPP || error == ENOSYS) return false;
  if (error != 0) throw state_->not_allocated(static_cast<int>(error), "reserve", offset, size_bytes);
  return true;
}

void File::truncate(std::int64_t length_bytes) {
  state_->check("truncate", 0, length_bytes);
  SpaceInUse::shrinks();
  const auto result = state_->traced(trace::Op::truncate, 0, [&] {
    return uninterrupted([&] { return ftruncate(state_->buffered.get(), length_bytes); }) == 0 ? 0 : errno;
  });
  if (result != 0)
    throw Error(static_cast<int>(result), {.attempted = "truncate",
                                           .path = state_->path,
                                           .size_bytes = length_bytes,
                                           .detail = file_size_limit(static_cast<int>(result))});
  state_->ahead->truncated(length_bytes);
  state_->refused->truncated(length_bytes);
}

bool File::punch(std::int64_t offset, std::int64_t size_bytes) {
  state_->check("punch", offset, size_bytes);
  if (size_bytes == 0) return true;
  SpaceInUse::shrinks();
  const auto result = state_->traced(trace::Op::truncate, size_bytes, [&] {
    const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    const auto punched = [&] { return fallocate(state_->buffered.get(), mode, offset, size_bytes); };
    return uninterrupted(punched) == 0 ? 0 : errno;
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
