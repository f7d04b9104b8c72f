// The thread-pool engine: each task is run from start to end by one worker, first come first served.
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

#include "device/worker.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/engine.hpp"

namespace outcore::device {
namespace {

/// The number of cores of the process, within bounds: two threads keep a disk busy while one copies.
unsigned default_thread_count() {
  cpu_set_t cores;
  const int count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 2;
  return static_cast<unsigned>(std::clamp(count, 2, 8));
}

class ThreadEngine final : public Engine {
 public:
  explicit ThreadEngine(unsigned threads) {
    workers_.reserve(threads);
    for (unsigned i = 0; i < threads; ++i) try {
        workers_.push_back(start_worker("outcore-io", [this] { work(); }));
      } catch (const Error&) {  // if the system has no further thread, the existing ones must do
        if (workers_.empty()) throw;
        break;
      }
  }
  ~ThreadEngine() override { stop(); }

  const char* name() const noexcept override { return "threads"; }

  void submit(std::shared_ptr<Task> task) override {
    {
      std::lock_guard lock(mutex_);
      if (!stopping_) queue_.push_back(std::move(task));
    }
    if (task)  // `task` is still ours: the engine has stopped
      run_to_end(*this, *task);
    else
      wake_.notify_one();
  }

  void stop() noexcept override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
  }

 private:
  /// Measured: [M39].
  void work() {
    Wakes wakes = Wakes::later;  // as it was started
    for (;;) {
      std::shared_ptr<Task> task;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
        if (queue_.empty()) return;
        task = std::move(queue_.front());
        queue_.pop_front();
      }
      while (const Operation* operation = task->next()) {
        const Wakes wanted = operation->copies ? Wakes::later : Wakes::soon;  // as for the ring's thread
        if (std::exchange(wakes, wanted) != wanted) set_wakes(wanted);
        task->result(run(*operation));
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<Task>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace

std::unique_ptr<Engine> make_thread_engine(unsigned threads) {
  return std::make_unique<ThreadEngine>(threads ? threads : default_thread_count());
}

}  // namespace outcore::device
