#include "device/buffer.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "outcore/error.hpp"

namespace outcore::device {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t huge_page_bytes = 2 << 20;
constexpr std::size_t max_bytes = std::size_t(1) << 40;  // some allocators abort on larger ones
// Memory beyond this goes back to the system at once.
constexpr std::int64_t max_pooled_bytes = 128 << 20, min_pooled_bytes = 2 << 20;
constexpr std::int64_t share_of_budget = 64;

/// Free buffers by capacity. Never destroyed: buffers may be given back during static destruction.
struct Pool {
  std::mutex mutex;
  std::map<std::size_t, std::vector<std::byte*>> free;
  std::int64_t bytes = 0, max_bytes = max_pooled_bytes;

  void clear() noexcept {
    for (auto& [capacity, list] : free)
      for (std::byte* data : list) std::free(data);
    free.clear();
    bytes = 0;
  }
};

Pool& pool();

void lock_pool() {
  pool().mutex.lock();
}
void unlock_pool() {
  pool().mutex.unlock();
}

Pool& pool() {
  static auto* const instance = [] {
    auto* made = new Pool;
    pthread_atfork(lock_pool, unlock_pool, unlock_pool);
    return made;
  }();
  return *instance;
}

/// Powers of two up to 1 MiB, then whole huge pages: few enough classes for buffers to be found again.
std::size_t capacity_for(std::size_t size) {
  constexpr std::size_t large = 1 << 20;
  if (size > large) return (size + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
  std::size_t capacity = page_bytes;
  while (capacity < size) capacity *= 2;
  return capacity;
}

std::byte* take_pooled(std::size_t capacity) {
  std::lock_guard lock(pool().mutex);
  const auto found = pool().free.find(capacity);
  if (found == pool().free.end() || found->second.empty()) return nullptr;
  std::byte* data = found->second.back();
  found->second.pop_back();
  pool().bytes -= static_cast<std::int64_t>(capacity);
  return data;
}

/// False if the pool is full.
bool give_pooled(std::byte* data, std::size_t capacity) noexcept {
  std::lock_guard lock(pool().mutex);
  if (pool().bytes + static_cast<std::int64_t>(capacity) > pool().max_bytes) return false;
  try {
    pool().free[capacity].push_back(data);
  } catch (const std::bad_alloc&) {
    return false;
  }
  pool().bytes += static_cast<std::int64_t>(capacity);
  return true;
}

[[noreturn]] void refuse(std::size_t size) {
  throw Error(ENOMEM,
              {.attempted = "allocation of an I/O buffer", .size_bytes = static_cast<std::int64_t>(size)});
}

std::byte* allocate(std::size_t capacity) {
  const std::size_t align = capacity % huge_page_bytes == 0 ? huge_page_bytes : page_bytes;
  void* data = std::aligned_alloc(align, capacity);
  if (!data) refuse(capacity);
  if (align == huge_page_bytes) madvise(data, capacity, MADV_HUGEPAGE);  // only a hint
  return static_cast<std::byte*>(data);
}

}  // namespace

Buffer::Buffer(std::size_t size_bytes) : size_(size_bytes) {
  if (size_bytes == 0) return;
  if (size_bytes > max_bytes) refuse(size_bytes);
  capacity_ = capacity_for(size_bytes);
  data_ = take_pooled(capacity_);
  if (!data_) data_ = allocate(capacity_);
}

Buffer::~Buffer() {
  if (data_ && !give_pooled(data_, capacity_)) std::free(data_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      capacity_(std::exchange(other.capacity_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

std::int64_t pooled_bytes() noexcept {
  std::lock_guard lock(pool().mutex);
  return pool().bytes;
}

void trim_pool() noexcept {
  std::lock_guard lock(pool().mutex);
  pool().clear();
}

void limit_pool(std::int64_t budget_bytes) noexcept {
  std::lock_guard lock(pool().mutex);
  pool().max_bytes = std::clamp(budget_bytes / share_of_budget, min_pooled_bytes, max_pooled_bytes);
  if (pool().bytes > pool().max_bytes) pool().clear();
}

}  // namespace outcore::device
