#include "outcore/exclusive_file.hpp"

#include <cerrno>

#include "file/open_file.hpp"
#include "outcore/error.hpp"
#include "outcore/trace.hpp"

namespace outcore::file {
namespace {

using trace::Op;

/// Runs a blocking operation and reports it, failed or not. The body returns the bytes moved.
template <class Body>
std::int64_t traced(Op op, std::uint32_t file, std::int64_t offset, bool sequential, Body body) {
  trace::Event event{
      .start_ns = trace::now_ns(), .offset = offset, .file = file, .op = op, .sequential = sequential};
  const auto finish = [&] {
    event.end_ns = trace::now_ns();
    event.waited_ns = event.end_ns - event.start_ns;
    trace::record(event);
  };
  try {
    event.bytes = body();
  } catch (...) {
    event.failed = true;
    finish();
    throw;
  }
  finish();
  return event.bytes;
}

/// Times a request that may be served from memory, if it is to be timed.
struct Stopwatch {
  const std::uint8_t stands_for = trace::timed_for();
  const std::uint64_t start_ns = stands_for > 0 ? trace::now_ns() : 0;

  /// Reports that it was served from memory, and returns its bytes.
  std::int64_t held(Op op, std::uint32_t file, std::int64_t offset, std::int64_t bytes,
                    bool sequential) const {
    if (stands_for == 0)
      trace::count(trace::Layer::file, op, bytes, sequential);
    else
      trace::record({.start_ns = start_ns,
                     .end_ns = trace::now_ns(),
                     .offset = offset,
                     .bytes = bytes,
                     .file = file,
                     .op = op,
                     .sequential = sequential,
                     .stands_for = stands_for});
    return bytes;
  }
};

/// Whether a request starts where the one before it ended. Updates that position.
bool follows(std::atomic<std::int64_t>& end, std::int64_t offset, std::int64_t size) {
  const bool sequential = end.load(std::memory_order_relaxed) == offset;
  end.store(offset + size, std::memory_order_relaxed);
  return sequential;
}

/// The end of a write that passed the buffer of the file.
struct Passed {
  OpenFile& open;
  std::int64_t offset, size;
  ~Passed() {
    const std::lock_guard use(open.mutex);
    open.combined.write_passed(offset, size);
  }
};

}  // namespace

struct ExclusiveFile::State {
  std::string name;
  std::shared_ptr<OpenFile> open;
  bool read_only = false;
  std::atomic<bool> closed{false};

  /// The open file; throws if this handle cannot be used. `attempted` names the operation.
  OpenFile& use(const char* attempted, std::int64_t offset = 0) const {
    if (closed.load(std::memory_order_acquire) || open->foreign()) refuse(attempted, EBADF);
    if (offset < 0) refuse(attempted, EINVAL, offset);
    return *open;
  }

  /// The same, for operations that change the file.
  OpenFile& change(const char* attempted, std::int64_t offset = 0) const {
    auto& file = use(attempted, offset);
    if (read_only) refuse(attempted, EACCES);
    return file;
  }

  [[noreturn]] void refuse(const char* attempted, int errno_value, std::int64_t value = 0) const {
    const char* why = "the file is closed";
    if (errno_value == EINVAL)
      why = "negative offset or size";
    else if (errno_value == EACCES)
      why = "it was opened to be read only";
    else if (open->foreign())
      why = "it belongs to the parent of this forked process; open it in this one";
    throw Error(errno_value, {.attempted = attempted,
                              .path = open->path,
                              .detail = why + (value < 0 ? ": " + std::to_string(value) : std::string())});
  }

  ~State() {
    end([](const auto& file) { release(file); }, true);
  }

  /// Ends this handle at the first call.
  void end(void (*how)(const std::shared_ptr<OpenFile>&), bool quietly = false) {
    if (closed.exchange(true, std::memory_order_acq_rel) || open->foreign()) return;
    try {
      traced(how == &discard ? Op::remove : Op::close, open->trace_id, 0, false, [&] {
        how(open);
        return 0;
      });
    } catch (const Error&) {
      if (!quietly) throw;
    }
  }
};

ExclusiveFile::ExclusiveFile(const std::string& name, const ExclusiveFileOptions& options)
    : state_(std::make_shared<State>()) {
  const auto start_ns = trace::now_ns();
  state_->closed = true;  // if this fails, there is nothing to end
  state_->name = name;
  state_->read_only = options.read_only;
  state_->open = acquire(name, options);
  state_->closed = false;
  const auto end_ns = trace::now_ns();
  trace::record({.start_ns = start_ns,
                 .end_ns = end_ns,
                 .waited_ns = end_ns - start_ns,
                 .file = state_->open->trace_id,
                 .op = Op::open});
}

ExclusiveFile::~ExclusiveFile() = default;
ExclusiveFile::ExclusiveFile(ExclusiveFile&&) noexcept = default;
ExclusiveFile& ExclusiveFile::operator=(ExclusiveFile&&) noexcept = default;

std::int64_t ExclusiveFile::read(PlainMemory buffer, std::int64_t offset) {
  auto& open = state_->use("read", offset);
  const auto size = static_cast<std::int64_t>(buffer.size());
  const bool sequential = follows(open.read_end, offset, size);
  const Stopwatch watch;
  std::unique_lock use(open.mutex);
  if (open.combined.read_held(buffer, offset))
    return watch.held(Op::read, open.trace_id, offset, size, sequential);
  if (!open.combined.read_passes(offset, size))
    return traced(Op::read, open.trace_id, offset, sequential,
                  [&] { return open.combined.read(buffer, offset); });
  use.unlock();
  return open.file.read(buffer, offset, {.layer = trace::Layer::file, .sequential = sequential});
}

std::int64_t ExclusiveFile::write(ConstPlainMemory buffer, std::int64_t offset) {
  auto& open = state_->change("write", offset);
  const auto size = static_cast<std::int64_t>(buffer.size());
  const bool sequential = follows(open.write_end, offset, size);
  const Stopwatch watch;
  std::unique_lock use(open.mutex);
  if (open.combined.write_held(buffer, offset))
    return watch.held(Op::write, open.trace_id, offset, size, sequential);
  if (!open.combined.write_passes(offset, size))
    return traced(Op::write, open.trace_id, offset, sequential,
                  [&] { return open.combined.write(buffer, offset); });
  use.unlock();
  const Passed passed{open, offset, size};
  return open.file.write(buffer, offset, {.layer = trace::Layer::file, .sequential = sequential});
}

Request ExclusiveFile::read_async(PlainMemory buffer, std::int64_t offset) {
  auto& open = state_->use("read", offset);
  const auto size = static_cast<std::int64_t>(buffer.size());
  {
    const std::lock_guard use(open.mutex);
    open.combined.before_read(offset, size);
  }
  const bool sequential = follows(open.read_end, offset, size);
  return open.file.read_async(buffer, offset, {.layer = trace::Layer::file, .sequential = sequential});
}

Request ExclusiveFile::write_async(ConstPlainMemory buffer, std::int64_t offset) {
  auto& open = state_->change("write", offset);
  const auto size = static_cast<std::int64_t>(buffer.size());
  const std::lock_guard use(open.mutex);
  open.combined.before_write(offset, size);
  const bool sequential = follows(open.write_end, offset, size);
  auto request =
      open.file.write_async(buffer, offset, {.layer = trace::Layer::file, .sequential = sequential});
  open.combined.passes(offset, size, request);
  return request;
}

std::int64_t ExclusiveFile::length() {
  auto& open = state_->use("ask for the length of");
  std::int64_t bytes = 0;
  traced(Op::stat, open.trace_id, 0, false, [&] {
    const std::lock_guard use(open.mutex);
    bytes = open.combined.length();
    return 0;
  });
  return bytes;
}

bool ExclusiveFile::eof(std::int64_t offset) {
  (void)state_->use("ask for the end of", offset);
  return offset >= length();
}

void ExclusiveFile::truncate(std::int64_t length_bytes) {
  auto& open = state_->change("truncate", length_bytes);
  traced(Op::truncate, open.trace_id, length_bytes, false, [&] {
    const std::lock_guard use(open.mutex);
    open.combined.drain();
    open.file.truncate(length_bytes);
    return 0;
  });
}

void ExclusiveFile::preallocate(std::int64_t size_bytes) {
  auto& open = state_->change("preallocate", size_bytes);
  traced(Op::preallocate, open.trace_id, 0, false, [&] {
    const std::lock_guard use(open.mutex);
    open.combined.drain();
    open.file.preallocate(size_bytes);
    return 0;
  });
}

void ExclusiveFile::flush() {
  auto& open = state_->use("flush");
  traced(Op::flush, open.trace_id, 0, false, [&] {
    const std::lock_guard use(open.mutex);
    open.combined.flush();
    return 0;
  });
}

void ExclusiveFile::close() {
  state_->end(&release);
}

void ExclusiveFile::erase() {
  (void)state_->change("erase");
  state_->end(&discard);
}

bool ExclusiveFile::closed() const noexcept {
  return state_->closed.load(std::memory_order_acquire);
}
const std::string& ExclusiveFile::path() const noexcept {
  return state_->open->path;
}
const std::string& ExclusiveFile::name() const noexcept {
  return state_->name;
}

}  // namespace outcore::file
