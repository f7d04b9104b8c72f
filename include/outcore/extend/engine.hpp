// Engines: they carry out the system-level operations of files.
//
// A Task hands out one Operation after another and is told each result; the engine knows only how to run an
// operation. What a request means (short transfers, EINTR, alignment, the end of the file) is known by its
// task alone (src/device/transfer.hpp), so all engines have the same semantics.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <string>

#include "outcore/api.h"
#include "outcore/origin.hpp"

namespace outcore::device {

/// One step at the level of the system. The list must stay valid until the result is known.
struct Operation {
  enum class Kind : std::uint8_t {
    read,      ///< result: bytes, 0 at the end of the file
    write,     ///< result: bytes
    reserve,   ///< reserves disk space for the range; the length of the file stays; result: 0
    sync,      ///< fdatasync; result: 0
    resident,  ///< result: bytes of the range that the page cache holds, size_bytes if any are not on disk
               ///< yet
    pause      ///< size_bytes nanoseconds of nothing (for throttled and faulty engines); result: 0
  };
  Kind kind = Kind::read;
  bool cached_only = false;  ///< read: serve from the page cache or fail with EAGAIN (RWF_NOWAIT)
  bool copies = false;       ///< goes through the page cache: moving it costs processor time
  int fd = -1;
  std::int64_t offset = 0;
  std::int64_t size_bytes = 0;  ///< sum of the list, for read and write
  const iovec* list = nullptr;
  unsigned list_count = 0;
};

/// The operations of one request, in order. Used by one thread at a time.
class OUTCORE_API Task {
 public:
  virtual ~Task() = default;
  /// The operation to run now; null: complete, and the task must not be touched again.
  virtual const Operation* next() noexcept = 0;
  /// Result of the operation last handed out, or -errno.
  virtual void result(std::int64_t value) noexcept = 0;
};

class OUTCORE_API Engine {
 public:
  virtual ~Engine() = default;
  /// The process that made the engine: its threads exist only there.
  [[nodiscard]] const Origin& origin() const noexcept { return origin_; }
  [[nodiscard]] virtual const char* name() const noexcept = 0;
  /// Runs the task to its end without blocking the caller on I/O. Thread-safe. Any number may be submitted;
  /// they are started in order of submission.
  virtual void submit(std::shared_ptr<Task> task) = 0;
  /// Runs one operation in the calling thread and returns its result, or -errno. Thread-safe.
  virtual std::int64_t run(const Operation& operation) noexcept { return run_plainly(operation); }
  /// The same by a system call, for which no engine is needed.
  static std::int64_t run_plainly(const Operation& operation) noexcept;
  /// Completes everything submitted and ends the threads; a later submit runs in the calling thread.
  virtual void stop() noexcept = 0;
  /// Begins requests that were submitted in a burst and have not begun.
  virtual void end_burst() noexcept {}

 private:
  Origin origin_;
};

/// While a Burst lives, the engine may hold back the requests of this thread, and begin them together: at the
/// end of the burst, or when the thread waits for a request. For callers that make several requests in a row:
/// the engine is woken once, and the disk gets all of them and not the first one alone. May be nested.
/// Measured: [M11].
class OUTCORE_API Burst {
 public:
  /// What this thread does after the burst: if it rests, the engine may use its core.
  enum class Then : std::uint8_t { computes, rests };
  explicit Burst(Then then = Then::computes) noexcept;
  ~Burst();
  Burst(const Burst&) = delete;
  Burst& operator=(const Burst&) = delete;
  static void begin_now() noexcept;  ///< begins all requests that the bursts of this thread hold back
  /// For an engine, in submit: whether it may hold the request back.
  [[nodiscard]] static bool holds(Engine& engine) noexcept;
  /// For an engine: what this thread does next.
  [[nodiscard]] static Then then() noexcept;

 private:
  Then before_;
};

/// Throws Error (ENOSYS, EPERM, ...) when the kernel or the build has no io_uring.
[[nodiscard]] OUTCORE_API std::unique_ptr<Engine> make_uring_engine(unsigned depth = 256);
/// threads = 0: chosen from the cores given to the process.
[[nodiscard]] OUTCORE_API std::unique_ptr<Engine> make_thread_engine(unsigned threads = 0);

/// The engine of the process: io_uring if it works, else the thread pool. OUTCORE_ENGINE=uring|threads forces
/// one. Chosen at first use, and again in a forked child. Stopped at exit.
/// For studies, OUTCORE_THROTTLE (throttle.hpp) puts an emulated storage in place of the one at hand, and
/// OUTCORE_REQUESTS=blocking|fortran (blocking.hpp) makes all requests as programs without asynchronous I/O
/// do.
[[nodiscard]] OUTCORE_API Engine& default_engine();
/// Runs an operation in the calling thread as the engine of the process would. Starts that engine only if it
/// emulates something.
OUTCORE_API std::int64_t run_by_default(const Operation& operation) noexcept;
/// A description of the storage that the engine of the process emulates; empty: it emulates nothing. Throws
/// Error(EINVAL) for settings that make no sense.
[[nodiscard]] OUTCORE_API std::string emulation();
/// Why the default engine is what it is, e.g. "io_uring_setup: Operation not permitted".
[[nodiscard]] OUTCORE_API std::string default_engine_reason();

}  // namespace outcore::device

// A skeleton to copy: one thread, one operation at a time.
#ifdef OUTCORE_SKELETONS

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace outcore::device {

class SkeletonEngine final : public Engine {
 public:
  SkeletonEngine() : thread_([this] { work(); }) {}
  ~SkeletonEngine() override { stop(); }

  [[nodiscard]] const char* name() const noexcept override { return "skeleton"; }

  void submit(std::shared_ptr<Task> task) override {
    {
      const std::lock_guard lock(mutex_);
      if (!stopping_) tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
    if (task) carry_out(*task);  // after stop
  }

  void stop() noexcept override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    const std::lock_guard lock(joining_);
    if (thread_.joinable()) thread_.join();
  }

 private:
  void carry_out(Task& task) noexcept {
    while (const Operation* operation = task.next()) task.result(run(*operation));
  }

  void work() noexcept {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const std::shared_ptr<Task> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      carry_out(*task);
      lock.lock();
    }
  }

  std::mutex mutex_, joining_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Task>> tasks_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace outcore::device

#endif
