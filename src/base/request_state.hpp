// The operation behind a request; the layer that moves the bytes makes it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <utility>

#include "base/sibling.hpp"
#include "outcore/request.hpp"

namespace outcore {

/// One operation. All of it is thread-safe.
class Request::State {
 public:
  State() = default;
  virtual ~State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Whether complete or failed, so that `finish` would not block. The thread that makes this true then calls
  /// announce_completion, except for operations that need help.
  [[nodiscard]] virtual bool done() const noexcept = 0;
  /// Waits, and does the work that is left to the waiting thread (a check of the bytes read, say). Keeps the
  /// error for `error`. Throws only if this thread cannot wait for it; then nothing has changed.
  virtual void finish() = 0;
  /// Whether nothing is left to do.
  [[nodiscard]] virtual bool finished() const noexcept { return done(); }
  /// Once finished: its error, or null.
  [[nodiscard]] virtual std::exception_ptr error() const = 0;
  /// The value, once finished and not failed.
  [[nodiscard]] virtual std::int64_t value() const noexcept { return 0; }
  [[nodiscard]] virtual std::span<std::byte> reply() const noexcept { return {}; }

  /// Helps the operation along. True: it progresses only by such calls, so waiting threads must call it
  /// again.
  virtual bool help() noexcept { return false; }
  /// Throws, before anything is done, if this thread cannot wait for it because the wait would never end.
  virtual void check_may_wait() const {}
  /// Called before and after a sleep of the calling thread until this request, or another, is done.
  virtual void begin_wait() { check_may_wait(); }
  virtual void end_wait(std::uint64_t /*waited_ns*/) noexcept {}

  /// For the waiting thread: finishes, then throws the error or returns the value.
  std::int64_t deliver();
  /// For the owner of the file or array that it changes: finishes, and returns its error if it was not
  /// reported. The error then counts as reported.
  [[nodiscard]] std::exception_ptr undelivered();
  /// Whether it is finished without an error to report. Finishes it here if it is done and any thread may
  /// finish it.
  [[nodiscard]] virtual bool settled() { return finished() && (told_ || !error()); }
  void tell_nobody() noexcept { told_ = true; }  ///< somebody else reports its error

 private:
  std::atomic<bool> told_{false};
};

/// A request whose bytes have moved before it is returned.
class CompleteRequest final : public Request::State {
 public:
  explicit CompleteRequest(std::int64_t bytes) noexcept : bytes_(bytes) {}
  [[nodiscard]] bool done() const noexcept override { return true; }
  void finish() override {}
  [[nodiscard]] std::exception_ptr error() const override { return nullptr; }
  [[nodiscard]] std::int64_t value() const noexcept override { return bytes_; }

 private:
  const std::int64_t bytes_;
};

/// A request that the first waiting thread finishes.
class OUTCORE_SIBLING FinishedByWaiter : public Request::State {
 public:
  void finish() final;
  [[nodiscard]] bool finished() const noexcept final { return finished_.load(std::memory_order_acquire); }
  [[nodiscard]] std::exception_ptr error() const final { return error_; }

 protected:
  /// Waits for the operation and ends it, or throws its error. One thread, once.
  virtual void end() = 0;
  /// For the destructor of a derived class: waits if nobody has. The error is lost.
  void finish_quietly() noexcept;
  /// Held while it is ended.
  std::mutex& ending() noexcept { return mutex_; }

 private:
  std::mutex mutex_;
  std::atomic<bool> finished_{false};
  std::exception_ptr error_;
};

/// A request that is complete when all of its parts have ended, in any threads. It begins with one part, that
/// of the thread that begins the others.
class ComposedRequest : public Request::State {
 public:
  /// `at_end` is called once, when the last part has ended, before the request is done.
  explicit ComposedRequest(std::function<void(bool failed)> at_end = {}) : at_end_(std::move(at_end)) {}

  void begin_part();
  void end_part(const std::exception_ptr& failure = nullptr);
  /// A request whose end ends a part; waiting threads help it along.
  void add(Request part);
  [[nodiscard]] bool failed() const;  ///< a part has

  [[nodiscard]] bool done() const noexcept final { return done_.load(std::memory_order_acquire); }
  void finish() final;
  [[nodiscard]] std::exception_ptr error() const final;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void(bool failed)> at_end_;
  std::deque<Request> helped_;
  int parts_ = 1;
  std::atomic<bool> done_{false};
  std::exception_ptr error_;  ///< the first
};

}  // namespace outcore
