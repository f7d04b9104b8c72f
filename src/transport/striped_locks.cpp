#include "transport/striped_locks.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace outcore::transport {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

void SharedLock::lock() noexcept {
  for (int attempt = 0; attempt < 200; ++attempt) {
    std::uint32_t open = 0;
    if (word_.compare_exchange_weak(open, 1, std::memory_order_acquire, std::memory_order_relaxed)) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  while (word_.exchange(2, std::memory_order_acquire) != 0)
    syscall(SYS_futex, &word_, FUTEX_WAIT, 2, nullptr, nullptr, 0);
}

void SharedLock::unlock() noexcept {
  if (word_.exchange(0, std::memory_order_release) == 2)
    syscall(SYS_futex, &word_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace outcore::transport
