#include "device/held_lock.hpp"

#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <set>
#include <utility>

namespace outcore::device {
namespace {

/// Never destroyed: static destructors may release locks.
struct Held {
  std::mutex mutex;
  std::set<int> descriptors;

  Held() { pthread_atfork(prepare, parent, child); }
  static Held& instance() {
    static auto* const held = new Held;
    return *held;
  }

 private:
  static void prepare() { instance().mutex.lock(); }
  static void parent() { instance().mutex.unlock(); }
  static void child() {
    for (const int descriptor : std::exchange(instance().descriptors, {})) ::close(descriptor);
    instance().mutex.unlock();
  }
};

}  // namespace

Locked try_lock(const Descriptor& file, int how) noexcept {
  while (::flock(file.get(), how | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Locked::by_others;
    if (errno != EINTR) return Locked::cannot;
  }
  return Locked::yes;
}

HeldLock::HeldLock(Descriptor file) : file_(std::move(file)) {
  if (!file_) return;
  const std::lock_guard guard(Held::instance().mutex);
  Held::instance().descriptors.insert(file_.get());
}

HeldLock& HeldLock::operator=(HeldLock&& other) noexcept {
  std::swap(origin_, other.origin_);
  std::swap(file_, other.file_);
  return *this;
}

void HeldLock::reset() noexcept {
  if (!file_) return;
  if (!origin_.here()) {
    (void)file_.release();  // closed already
    return;
  }
  const std::lock_guard guard(Held::instance().mutex);
  Held::instance().descriptors.erase(file_.get());
  (void)file_.reset();
}

}  // namespace outcore::device
