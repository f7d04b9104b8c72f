// Processes that last for many jobs.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "array/arrays.hpp"
#include "crash/images.hpp"
#include "outcore/world.hpp"

namespace crash {

using namespace outcore;  // NOLINT

/// These are threads that are kept, as it takes longer to make a world than to examine an image.
class Processes {
 public:
  /// With `apart` each is a node of its own.
  explicit Processes(int count, bool apart = false)
      : count_(count), host_([this, apart] {
          outcore::test::in_worlds(
              count_, {.memory_bytes = 1 << 30, .scratch = scratch_.path(), .node_for_each_process = apart},
              [this](World& world) { serve(world); });
        }) {}
  ~Processes() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    host_.join();
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  [[nodiscard]] int count() const noexcept { return count_; }

  /// All processes run `body`. Throws the exception of one of them.
  void run(const std::function<void(World&)>& body) {
    std::unique_lock lock(mutex_);
    body_ = &body;
    error_ = nullptr;
    left_ = count_;
    ++number_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return left_ == 0; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void serve(World& world) {
    std::uint64_t done = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ends_ || number_ != done; });
      if (ends_) return;
      done = number_;
      lock.unlock();
      std::exception_ptr error;
      try {
        (*body_)(world);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error) error_ = error;
      if (--left_ == 0) changed_.notify_all();
    }
  }

  const TemporaryDirectory scratch_{fast_place()};
  const int count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(World&)>* body_ = nullptr;
  std::exception_ptr error_;
  std::uint64_t number_ = 0;
  int left_ = 0;
  bool ends_ = false;
  std::thread host_;
};

}  // namespace crash
