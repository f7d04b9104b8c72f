// What stands behind a request: made by the layer that moves the bytes.
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

  /// Complete or failed: `finish` would not block. Whoever makes this true calls announce_completion
  /// afterwards, but for operations that need help.
  [[nodiscard]] virtual bool done() const noexcept = 0;
  /// Waits, and does what is left to the one who waits (to check what was read, say). Keeps the error for
  /// `error`. Throws only where it cannot be waited for, and then nothing has changed.
  virtual void finish() = 0;
  /// Nothing is left to do.
  [[nodiscard]] virtual bool finished() const noexcept { return done(); }
  /// Once finished: what it failed with, or null.
  [[nodiscard]] virtual std::exception_ptr error() const = 0;
  /// Once finished, and not failed.
  [[nodiscard]] virtual std::int64_t value() const noexcept { return 0; }
  [[nodiscard]] virtual std::span<std::byte> reply() const noexcept { return {}; }

  /// Moves the operation on. True: it becomes done only by that, so those who wait have to come back.
  virtual bool help() noexcept { return false; }
  /// Throws, before anything is done, where this thread cannot wait for it: the wait would never end.
  virtual void check_may_wait() const {}
  /// Around a sleep of the calling thread until this, or something else, is done.
  virtual void begin_wait() { check_may_wait(); }
  virtual void end_wait(std::uint64_t /*waited_ns*/) noexcept {}

  /// For the one who waits: finishes, then throws the error or returns the value.
  std::int64_t deliver();
  /// For the owner of what was to be changed: finishes; its error, if nobody has been told. It counts as
  /// told.
  [[nodiscard]] std::exception_ptr undelivered();
  /// Finished, and there is nothing to tell. One that may be finished by anybody, once it is done, is
  /// finished here.
  [[nodiscard]] virtual bool settled() { return finished() && (told_ || !error()); }
  void tell_nobody() noexcept { told_ = true; }  ///< its error is for somebody else

 private:
  std::atomic<bool> told_{false};
};

/// One whose bytes have moved before it is returned.
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

/// One that whoever waits finishes, once.
class OUTCORE_SIBLING FinishedByWaiter : public Request::State {
 public:
  void finish() final;
  [[nodiscard]] bool finished() const noexcept final { return finished_.load(std::memory_order_acquire); }
  [[nodiscard]] std::exception_ptr error() const final { return error_; }

 protected:
  /// Waits for it and ends it, or throws what it failed with. By one thread, once.
  virtual void end() = 0;
  /// For the destructor of the class that is made: waits if nobody has. The error is lost.
  void finish_quietly() noexcept;
  /// Held while it is ended.
  std::mutex& ending() noexcept { return mutex_; }

 private:
  std::mutex mutex_;
  std::atomic<bool> finished_{false};
  std::exception_ptr error_;
};

/// One that is complete when all its parts have ended, by whatever threads. It begins with one part, of
/// whoever begins the others.
class ComposedRequest : public Request::State {
 public:
  /// `at_end` is called once, when the last part has ended, before the request is done.
  explicit ComposedRequest(std::function<void(bool failed)> at_end = {}) : at_end_(std::move(at_end)) {}

  void begin_part();
  void end_part(const std::exception_ptr& failure = nullptr);
  /// A request whose end ends a part, so that whoever waits helps it along.
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
