// The engine of the process: chosen at first use, stopped at exit, chosen anew in a forked child.
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>

#include "outcore/device/engine.hpp"
#include "outcore/error.hpp"

namespace outcore::device {
namespace {

struct Chosen {
  std::mutex mutex;
  std::atomic<Engine*> engine{nullptr};
  Engine* of_parent = nullptr;  ///< in a forked child: its threads do not exist here, so it is left alone
  std::string reason;
};

/// Never destroyed: files that outlive static destruction may still use it, after `stop` in their own thread.
Chosen& chosen() {
  static auto* const instance = new Chosen;
  return *instance;
}

void stop_at_exit() {
  if (Engine* engine = chosen().engine.load()) engine->stop();
}

void lock_before_fork() {
  chosen().mutex.lock();
}
void unlock_in_parent() {
  chosen().mutex.unlock();
}
void forget_in_child() {
  Chosen& c = chosen();
  new (&c.mutex) std::mutex;  // a thread that is not here any more cannot unlock it
  if (Engine* engine = c.engine.exchange(nullptr)) c.of_parent = engine;
}

std::unique_ptr<Engine> choose(std::string& reason) {
  const char* wish = std::getenv("OUTCORE_ENGINE");
  const std::string name = wish ? wish : "";
  if (name == "threads") {
    reason = "OUTCORE_ENGINE=threads";
    return make_thread_engine();
  }
  if (name == "uring") {
    auto engine = make_uring_engine();
    reason = "OUTCORE_ENGINE=uring";
    return engine;
  }
  if (!name.empty())
    throw Error(EINVAL, {.attempted = "choice of an I/O engine",
                         .detail = "OUTCORE_ENGINE is '" + name + "', expected uring or threads"});
  try {
    auto engine = make_uring_engine();
    reason = "io_uring works";
    return engine;
  } catch (const Error& error) {
    reason = error.what();
    return make_thread_engine();
  }
}

Engine& choose_now(Chosen& c) {
  std::lock_guard lock(c.mutex);
  if (Engine* engine = c.engine.load()) return *engine;
  static const int once = [] {
    pthread_atfork(lock_before_fork, unlock_in_parent, forget_in_child);
    return std::atexit(stop_at_exit);
  }();
  (void)once;
  Engine* engine = choose(c.reason).release();
  c.engine.store(engine, std::memory_order_release);
  return *engine;
}

}  // namespace

Engine& default_engine() {
  Chosen& c = chosen();
  Engine* engine = c.engine.load(std::memory_order_acquire);
  return engine ? *engine : choose_now(c);
}

std::string default_engine_reason() {
  static_cast<void>(default_engine());
  std::lock_guard lock(chosen().mutex);
  return chosen().reason;
}

}  // namespace outcore::device
