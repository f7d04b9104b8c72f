#include "device/space_in_use.hpp"

#include <pthread.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <utility>

namespace outcore::device {
namespace {

constexpr std::int64_t unit_bytes = 512;  // of stat(2)

constinit std::atomic<bool> g_grown{false};  // since the last look

struct Files {
  std::mutex mutex;
  std::set<int> open;
  std::int64_t peak_bytes = 0;

  Files() { pthread_atfork(prepare, parent, child); }
  /// Never freed: static destructors may close files.
  static Files& instance() {
    static auto& all = *new Files;
    return all;
  }

 private:
  static void prepare() { instance().mutex.lock(); }
  static void parent() { instance().mutex.unlock(); }
  /// Files that were open before are the parent's.
  static void child() {
    instance().open.clear();
    instance().peak_bytes = 0;
    instance().mutex.unlock();
  }
};

/// With the lock held.
std::int64_t sum(const Files& all) {
  std::set<std::pair<dev_t, ino_t>> seen;
  std::int64_t bytes = 0;
  for (const int fd : all.open) {
    struct stat about{};
    if (fstat(fd, &about) == 0 && seen.emplace(about.st_dev, about.st_ino).second)
      bytes += about.st_blocks * unit_bytes;
  }
  return bytes;
}

/// With the lock held. Concurrent writes report afterwards that files have grown.
void look(Files& all) noexcept {
  if (!g_grown.exchange(false)) return;
  try {
    all.peak_bytes = std::max(all.peak_bytes, sum(all));
  } catch (...) {  // no memory for the list: the next look may have it
    g_grown = true;
  }
}

}  // namespace

SpaceInUse::SpaceInUse(int fd, bool writes) : fd_(writes ? fd : -1) {
  if (fd_ < 0) return;
  const std::lock_guard lock(Files::instance().mutex);
  Files::instance().open.insert(fd_);
  g_grown = true;  // it may have been there
}

SpaceInUse::~SpaceInUse() {
  if (fd_ < 0) return;
  const std::lock_guard lock(Files::instance().mutex);
  look(Files::instance());
  Files::instance().open.erase(fd_);
}

void SpaceInUse::grown() noexcept {
  if (!g_grown.load(std::memory_order_relaxed)) g_grown.store(true);
}

void SpaceInUse::shrinks() noexcept {
  if (!g_grown.load()) return;
  const std::lock_guard lock(Files::instance().mutex);
  look(Files::instance());
}

std::int64_t SpaceInUse::peak_bytes() noexcept {
  const std::lock_guard lock(Files::instance().mutex);
  look(Files::instance());
  return Files::instance().peak_bytes;
}

void SpaceInUse::forget_peak() noexcept {
  const std::lock_guard lock(Files::instance().mutex);
  Files::instance().peak_bytes = 0;
  g_grown = true;
}

}  // namespace outcore::device
