#include "outcore/device/request.hpp"

#include <atomic>
#include <cerrno>

#include "device/completion.hpp"
#include "device/transfer.hpp"
#include "outcore/device/engine.hpp"
#include "outcore/trace.hpp"

namespace outcore::device {
namespace {

std::atomic<std::uint32_t> g_completions{0};

/// Result of a complete transfer; its error counts as delivered.
std::int64_t take_result(Transfer& transfer) {
  if (transfer.error() != 0) {
    transfer.delivered.store(true, std::memory_order_relaxed);
    throw transfer.owner().error_of(transfer);
  }
  return transfer.moved_bytes();
}

/// Waits, and books the time to the transfer's file.
void wait_for(Transfer& transfer) {
  if (transfer.done()) return;
  Burst::begin_now();
  const std::uint64_t start_ns = trace::now_ns();
  transfer.wait();
  transfer.owner().waited(transfer, trace::now_ns() - start_ns);
}

}  // namespace

void announce_completion() noexcept {
  g_completions.fetch_add(1, std::memory_order_release);
  g_completions.notify_all();
}
std::uint32_t completion_count() noexcept {
  return g_completions.load(std::memory_order_acquire);
}
void await_completion(std::uint32_t seen) noexcept {
  g_completions.wait(seen, std::memory_order_acquire);
}

std::int64_t Request::wait() {
  if (!transfer_) return 0;
  wait_for(*transfer_);
  return take_result(*transfer_);
}

bool Request::test() {
  if (!transfer_) return true;
  if (!transfer_->done()) return false;
  take_result(*transfer_);
  return true;
}

bool Request::done() const noexcept {
  return !transfer_ || !transfer_.here() || transfer_->done();
}

void wait_all(std::span<Request> requests) {
  std::exception_ptr first;
  for (Request& request : requests) {
    try {
      request.wait();
    } catch (const Error&) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

std::size_t wait_any(std::span<Request> requests) {
  if (requests.empty()) throw Error(EINVAL, {.attempted = "wait for any of no requests"});
  Burst::begin_now();
  const std::uint64_t start_ns = trace::now_ns();
  for (bool waited = false;; waited = true) {
    const std::uint32_t seen = completion_count();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (!requests[i].done()) continue;
      const auto& transfer = requests[i].transfer_;
      if (waited && transfer && transfer.here())
        transfer->owner().waited(*transfer, trace::now_ns() - start_ns);
      return i;
    }
    await_completion(seen);
  }
}

}  // namespace outcore::device
