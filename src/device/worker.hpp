// Threads of the library.
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "base/start_thread.hpp"
#include "outcore/extend/engine.hpp"

namespace outcore::device {

/// Starts a thread that begins at once on a free core but never takes the core of the thread that wakes it;
/// otherwise a nonblocking call would last as long as its copy. Measured: [M2].
template <class Body>
std::thread start_worker(const char* name, Body body) {
  std::thread thread = start_thread(name, std::move(body));
  const sched_param none{};
  pthread_setschedparam(thread.native_handle(), SCHED_BATCH, &none);
  return thread;
}

/// What happens to a thread that computes on a core when the calling thread is woken there.
enum class Wakes {
  soon,   ///< it is interrupted, also by threads that the caller starts, such as the kernel's own
  later,  ///< it goes on to the end of its time slice (1 to 4 ms), as with `start_worker`
};

/// Linux from 6.12 on interrupts for a thread that requests a short slice, earlier versions for any thread
/// that has slept. If there is only one core, it belongs to the caller of the library: nothing interrupts it.
/// Measured: [M4], [M39].
inline void set_wakes(Wakes wakes) noexcept {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) wakes = Wakes::later;
  struct {  // sched_attr, which the C library has from 2.41 on
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t slice_ns, deadline_ns, period_ns;
  } attributes{};
  attributes.size = sizeof attributes;
  attributes.policy = wakes == Wakes::soon ? SCHED_OTHER : SCHED_BATCH;
  attributes.nice = getpriority(PRIO_PROCESS, 0);
  attributes.slice_ns = wakes == Wakes::soon ? 100'000 : 0;  // the shortest there is
  syscall(SYS_sched_setattr, 0, &attributes, 0);             // only a wish
}

/// All operations of a task, one after another, in the calling thread.
inline void run_to_end(Engine& engine, Task& task) noexcept {
  while (const Operation* operation = task.next()) task.result(engine.run(*operation));
}

}  // namespace outcore::device
