// Memory that runs out where a test wants it: operator new of this program throws. Include this in one file
// of a program.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace failing_memory {

enum class Where { helpers, anywhere };  // the threads that help the caller; these and the caller

inline std::atomic<long> left{-1};  // allocations until one fails; negative: none fails
inline std::atomic<bool> of_caller{false};

/// Whether this thread helps the caller. Threads of engines do not: these have names of their own.
inline bool concerned() {
  if (gettid() == getpid()) return of_caller;
  char name[16] = {};
  pthread_getname_np(pthread_self(), name, sizeof name);
  return std::strncmp(name, "outcore-", 8) != 0 || std::strcmp(name, "outcore-team") == 0;
}

// Not inlined: the compiler would take what malloc returns and operator delete frees for a mistake.
[[gnu::noinline]] inline void* allocate(std::size_t size, std::size_t alignment) {
  if (left.load(std::memory_order_relaxed) >= 0 && concerned() && left.fetch_sub(1) == 0)
    throw std::bad_alloc();
  const std::size_t whole = (std::max<std::size_t>(size, 1) + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, whole);
  if (!memory) throw std::bad_alloc();
  return memory;
}

[[gnu::noinline]] inline void release(void* memory) noexcept {
  std::free(memory);
}

/// While this object lives the allocation after `count` others fails, once. False if there were fewer.
class After {
 public:
  After(long count, Where where) {
    of_caller = where == Where::anywhere;
    left = count;
  }
  ~After() { left = -1; }
  After(const After&) = delete;
  After& operator=(const After&) = delete;
  [[nodiscard]] static bool failed() { return left < 0; }
};

}  // namespace failing_memory

void* operator new(std::size_t size) {
  return failing_memory::allocate(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return failing_memory::allocate(size, std::size_t(alignment));
}
void operator delete(void* memory) noexcept {
  failing_memory::release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  failing_memory::release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  failing_memory::release(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  failing_memory::release(memory);
}
