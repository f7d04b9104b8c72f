// The io_uring engine: one thread owns one ring. Callers put tasks into a queue and wake it; it runs many
// operations at once, and starts the next operation of a task when the one before is complete.
#include <cerrno>

#include "outcore/error.hpp"
#include "outcore/extend/engine.hpp"
#include "outcore/trace.hpp"

#ifdef OUTCORE_HAVE_LIBURING

#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/worker_core.hpp"
#include "device/descriptor.hpp"
#include "device/worker.hpp"

#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif
#ifndef IORING_SETUP_DEFER_TASKRUN
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif

namespace outcore::device {
namespace {

/// Larger copies to or from the page cache are handed to the kernel's own threads: done in the ring's thread
/// they would hold up everything else. For smaller ones, that costs more than the copy.
constexpr std::int64_t inline_copy_bytes = 256 << 10;
/// Direct requests of this size and above are submitted one by one. The kernel merges requests that it gets
/// at once into one of up to 4 MiB, which arrives late and as a whole, so that processor and disk wait for
/// each other in turn. Measured: [M9].
constexpr std::int64_t large_bytes = 256 << 10;
/// The time in which a caller that waits for requests wakes up at their end and begins the next ones.
constexpr std::uint64_t moment_ns = 200'000;
/// If the kernel cannot take operations for lack of memory, it is tried again after this time, and this many
/// times if no operation is under way that could free memory.
constexpr int rest_ms = 1, max_rests = 1000;

class Ring {
 public:
  /// 0 or an errno value. SINGLE_ISSUER (Linux 6.0) and DEFER_TASKRUN (6.1) make completions cheaper: they
  /// are processed when the thread asks for them and do not interrupt it.
  int open(unsigned entries) noexcept {
    int result =
        io_uring_queue_init(entries, &ring_, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
    if (result == -EINVAL) result = io_uring_queue_init(entries, &ring_, 0);
    open_ = result == 0;
    return -result;
  }
  ~Ring() {
    if (open_) io_uring_queue_exit(&ring_);
  }
  io_uring* get() noexcept { return &ring_; }

 private:
  io_uring ring_{};
  bool open_ = false;
};

/// A task that has an operation in the ring, or room for one.
struct RingTask {
  std::shared_ptr<Task> task;
  const Operation* operation = nullptr;
  bool direct = false, handed_on = false;  ///< past the page cache; copied by a thread of the kernel
  __kernel_timespec pause{};
};

class UringEngine final : public Engine {
 public:
  explicit UringEngine(unsigned depth) : depth_(depth), wake_(eventfd(0, EFD_CLOEXEC)) {
    if (!wake_) throw Error(errno, {.attempted = "eventfd"});
    std::promise<int> opened;
    auto result = opened.get_future();
    thread_ = start_thread("outcore-ring", [this, &opened] { work(opened); });
    if (const int error = result.get(); error != 0) {
      thread_.join();
      throw Error(error, {.attempted = "io_uring_setup", .detail = hint(error)});
    }
  }
  ~UringEngine() override { stop(); }

  const char* name() const noexcept override { return "uring"; }

  void submit(std::shared_ptr<Task> task) override {
    const bool held = Burst::holds(*this);
    bool was_asleep = false;
    {
      std::lock_guard lock(mutex_);
      if (!stopping_) {
        incoming_.push_back(std::move(task));
        was_asleep = !held && std::exchange(asleep_, false);
      }
    }
    if (task)  // `task` is still ours: the engine has stopped
      run_to_end(*this, *task);
    else if (was_asleep)
      wake();
  }

  void end_burst() noexcept override {
    bool was_asleep = false;
    {
      std::lock_guard lock(mutex_);
      was_asleep = !incoming_.empty() && std::exchange(asleep_, false);
    }
    if (was_asleep) wake();
  }

  void stop() noexcept override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      asleep_ = false;
    }
    wake();
    if (thread_.joinable()) thread_.join();
  }

 private:
  static std::string hint(int error) {
    if (error == EPERM) return "forbidden here, as in most containers, or by kernel.io_uring_disabled";
    if (error == ENOSYS) return "the kernel has no io_uring, or it is filtered away";
    if (error == ENOMEM) return "see the limit of locked memory, ulimit -l";
    return {};
  }

  /// A disk without a request is idle until the next one. A caller that begins a request shortly after the
  /// end of several waits for the disk and does not compute. Then it is faster to start the ring's thread on
  /// the core of that caller, which is awake: it takes half the time of a start on another core (140 instead
  /// of 270 us of the 4 ms of 8 MiB, on a disk that completes all requests at once). The first call of each
  /// turn then takes 40 us. A caller that rests anyway, such as a thread that has served calls, leaves its
  /// core to the ring's thread: on the other core, their caller may be polling.
  void wake() noexcept {
    const bool computes = Burst::then() == Burst::Then::computes;
    if (computes && trace::now_ns() - idle_since_ns_.load(std::memory_order_relaxed) > moment_ns)
      core_.leave_mine();
    eventfd_write(wake_.get(), 1);
  }

  // ---- what follows runs in the ring's thread

  void work(std::promise<int>& opened) {
    Ring ring;
    all_.resize(depth_);
    free_.reserve(depth_);
    for (RingTask& running : all_) free_.push_back(&running);
    given_.reserve(depth_ + 1);
    const int error = ring.open(depth_ + 1);  // one more for the wake-up
    opened.set_value(error);
    if (error != 0) return;
    set_wakes(wakes_);
    listen(ring);
    while (take_incoming()) {
      start_queued(ring);
      // The last tasks may have ended without an operation in the ring; nobody wakes us after stop().
      if (ending_ && free_.size() == depth_) continue;
      adapt();
      core_.here();
      const int refusal = ring_serves_ ? give(ring, 1) : 0;
      (void)core_.awake();
      const unsigned busy = direct_;
      if (const bool any = complete(ring); !any && (refusal != 0 || !ring_serves_)) rest(ring, refusal);
      if (busy > 1 && direct_ == 0) idle_since_ns_.store(trace::now_ns(), std::memory_order_relaxed);
    }
  }

  /// When a direct request has ended, the disk is idle until the next one. A copy, in contrast, needs a core:
  /// the kernel's threads that make it inherit the priority of the ring's thread, and must not interrupt a
  /// caller that prepares the next block.
  void adapt() noexcept {
    const Wakes wakes = copies_ > 0 && direct_ == 0 ? Wakes::later : Wakes::soon;
    if (wakes != std::exchange(wakes_, wakes)) set_wakes(wakes);
  }

  /// Moves new tasks to the queue. False when the engine has stopped and has no tasks. From here on callers
  /// must wake this thread, unless there are new tasks.
  bool take_incoming() {
    std::lock_guard lock(mutex_);
    while (!incoming_.empty()) {
      queued_.push_back(std::move(incoming_.front()));
      incoming_.pop_front();
    }
    asleep_ = true;
    ending_ = stopping_;
    return !(stopping_ && queued_.empty() && free_.size() == depth_);
  }

  void start_queued(Ring& ring) {
    while (!queued_.empty() && !free_.empty()) {
      RingTask* running = free_.back();
      free_.pop_back();
      running->task = std::move(queued_.front());
      queued_.pop_front();
      advance(ring, running);
    }
  }

  /// Puts the next operation of a task into the ring, or frees its entry.
  void advance(Ring& ring, RingTask* running) {
    while (const Operation* operation = running->task->next()) {
      if (operation->kind != Operation::Kind::resident && ring_serves_)
        return prepare(ring, running, *operation);
      running->task->result(run(*operation));  // microseconds, and io_uring has no such operation
    }
    running->task.reset();
    free_.push_back(running);
  }

  /// Submits the prepared operations to the kernel, and waits for this many completions. Returns 0, or an
  /// errno value if the kernel has taken none.
  int give(Ring& ring, unsigned wait) {
    const int taken = wait > 0 ? io_uring_submit_and_wait(ring.get(), wait) : io_uring_submit(ring.get());
    if (taken < 0) return -taken;
    given_.erase(given_.begin(), given_.begin() + taken);
    rests_ = 0;
    return 0;
  }

  /// Rests, if the kernel has taken nothing, or takes nothing any more, and no operation was complete.
  void rest(Ring& ring, int error) {
    if (error == EINTR) return;
    const bool may_pass = error == EAGAIN || error == EBUSY || error == ENOMEM;
    const std::size_t waiting =
        given_.size() - static_cast<std::size_t>(std::count(given_.begin(), given_.end(), nullptr));
    const bool alone = depth_ - free_.size() == waiting;  // no operation that it has taken is under way
    if (ring_serves_ && (!may_pass || (alone && ++rests_ > max_rests))) return do_without(ring);
    if (!ring_serves_) {  // callers wake us as ever
      pollfd woken{.fd = wake_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&woken, 1, rest_ms) > 0) eventfd_read(wake_.get(), &wake_count_);
      if (alone) return;
    }
    io_uring_cqe* cqe = nullptr;
    __kernel_timespec pause{.tv_sec = 0, .tv_nsec = rest_ms * 1'000'000};
    const int none = io_uring_wait_cqe_timeout(ring.get(), &cqe, &pause);
    if (none != 0 && none != -ETIME) std::this_thread::sleep_for(std::chrono::milliseconds(rest_ms));
  }

  /// From now on this thread runs all operations itself, beginning with those that the kernel has not taken.
  void do_without(Ring& ring) {
    ring_serves_ = false;
    for (RingTask* running : std::exchange(given_, {})) {
      if (!running) continue;
      ended(running, run(*running->operation));
      advance(ring, running);
    }
  }

  /// Never null: the ring has an entry for every task and one for the wake-up.
  static io_uring_sqe* entry(Ring& ring) noexcept { return io_uring_get_sqe(ring.get()); }

  void prepare(Ring& ring, RingTask* running, const Operation& o) {
    io_uring_sqe* sqe = entry(ring);
    running->operation = &o;
    const auto offset = static_cast<std::uint64_t>(o.offset);
    switch (o.kind) {
      case Operation::Kind::read:
        io_uring_prep_readv2(sqe, o.fd, o.list, o.list_count, offset, o.cached_only ? RWF_NOWAIT : 0);
        break;
      case Operation::Kind::write:
        io_uring_prep_writev(sqe, o.fd, o.list, o.list_count, offset);
        break;
      case Operation::Kind::reserve:
        io_uring_prep_fallocate(sqe, o.fd, FALLOC_FL_KEEP_SIZE, offset,
                                static_cast<std::uint64_t>(o.size_bytes));
        break;
      case Operation::Kind::sync:
        io_uring_prep_fsync(sqe, o.fd, IORING_FSYNC_DATASYNC);
        break;
      case Operation::Kind::pause:
        running->pause = {.tv_sec = o.size_bytes / 1'000'000'000, .tv_nsec = o.size_bytes % 1'000'000'000};
        io_uring_prep_timeout(sqe, &running->pause, 0, 0);
        break;
      case Operation::Kind::resident:
        break;  // run by advance()
    }
    io_uring_sqe_set_data(sqe, running);
    running->direct = !o.copies && (o.kind == Operation::Kind::read || o.kind == Operation::Kind::write);
    running->handed_on = o.copies && !o.cached_only && o.size_bytes > inline_copy_bytes;
    direct_ += running->direct;
    copies_ += running->handed_on;
    if (running->handed_on) sqe->flags |= IOSQE_ASYNC;
    given_.push_back(running);
    if (running->direct && o.size_bytes >= large_bytes) give(ring, 0);  // else with the next ones
  }

  void listen(Ring& ring) {
    io_uring_sqe* sqe = entry(ring);
    io_uring_prep_read(sqe, wake_.get(), &wake_count_, sizeof wake_count_, 0);
    io_uring_sqe_set_data(sqe, nullptr);
    given_.push_back(nullptr);
  }

  /// Ends completed operations; returns whether there were any.
  bool complete(Ring& ring) {
    bool any = false;
    io_uring_cqe* cqe = nullptr;
    for (; io_uring_peek_cqe(ring.get(), &cqe) == 0; any = true) {
      auto* running = static_cast<RingTask*>(io_uring_cqe_get_data(cqe));
      const std::int64_t value = cqe->res;
      io_uring_cqe_seen(ring.get(), cqe);
      if (!running) {
        if (ring_serves_) listen(ring);
        continue;
      }
      if (value == -ECANCELED) {  // the kernel has no thread for it
        ended(running, run(*running->operation));
        advance(ring, running);
        continue;
      }
      const bool pause_over = running->operation->kind == Operation::Kind::pause && value == -ETIME;
      ended(running, pause_over ? 0 : value);
      advance(ring, running);
    }
    return any;
  }

  void ended(RingTask* running, std::int64_t value) noexcept {
    direct_ -= running->direct;
    copies_ -= running->handed_on;
    running->task->result(value);
  }

  const unsigned depth_;
  Descriptor wake_;
  std::uint64_t wake_count_ = 0;
  WorkerCore core_;
  std::atomic<std::uint64_t> idle_since_ns_ = 0;  ///< when the last of several direct requests ended

  std::mutex mutex_;  ///< guards these three
  std::deque<std::shared_ptr<Task>> incoming_;
  bool asleep_ = false;  ///< the ring's thread will not look at `incoming_` unless woken
  bool stopping_ = false;

  bool ending_ = false;                       ///< `stopping_`, as last seen by the ring's thread
  std::deque<std::shared_ptr<Task>> queued_;  ///< waiting for one of them that is free
  std::vector<RingTask> all_;
  std::vector<RingTask*> free_;
  std::vector<RingTask*> given_;  ///< in the ring, in order, and not taken by the kernel; null: the wake-up
  bool ring_serves_ = true;       ///< the kernel takes operations
  int rests_ = 0;                 ///< in a row, with nothing under way
  unsigned direct_ = 0, copies_ = 0;  ///< operations of each kind in the ring
  Wakes wakes_ = Wakes::soon;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Engine> make_uring_engine(unsigned depth) {
  if (depth == 0 || depth > 4096)
    throw Error(EINVAL, {.attempted = "io_uring engine", .detail = "depth must be 1 to 4096"});
  return std::make_unique<UringEngine>(depth);
}

}  // namespace outcore::device

#else

namespace outcore::device {

std::unique_ptr<Engine> make_uring_engine(unsigned) {
  throw Error(ENOSYS, {.attempted = "io_uring engine",
                       .detail = "built without liburing; install liburing-dev and build again"});
}

}  // namespace outcore::device

#endif
