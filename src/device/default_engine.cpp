// The engine of the process: chosen at first use, stopped at exit, chosen anew in a forked child.
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>

#include "device/blocking.hpp"
#include "device/throttle.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/engine.hpp"

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
  new (&c.mutex) std::mutex;  // its holder, a thread of the parent, cannot unlock it
  if (Engine* engine = c.engine.exchange(nullptr)) c.of_parent = engine;
}

std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

Requests requests_wanted() {
  const std::string wish = setting("OUTCORE_REQUESTS");
  if (wish.empty() || wish == "asynchronous") return Requests::asynchronous;
  if (wish == "blocking") return Requests::blocking;
  if (wish == "fortran") return Requests::fortran;
  throw Error(EINVAL,
              {.attempted = "choice of an I/O engine",
               .detail = "OUTCORE_REQUESTS is '" + wish + "', expected asynchronous, blocking or fortran"});
}

std::unique_ptr<Engine> emulating(std::unique_ptr<Engine> engine) {
  const Requests requests = requests_wanted();
  if (const std::string throttle = setting("OUTCORE_THROTTLE"); !throttle.empty())
    engine = make_throttled_engine(std::move(engine), Throttle::parse(throttle));
  if (requests != Requests::asynchronous) engine = make_blocking_engine(std::move(engine), requests);
  return engine;
}

std::unique_ptr<Engine> choose(std::string& reason) {
  const std::string name = setting("OUTCORE_ENGINE");
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
  Engine* engine = emulating(choose(c.reason)).release();
  c.engine.store(engine, std::memory_order_release);
  return *engine;
}

}  // namespace

Engine& default_engine() {
  Chosen& c = chosen();
  Engine* engine = c.engine.load(std::memory_order_acquire);
  return engine ? *engine : choose_now(c);
}

std::int64_t run_by_default(const Operation& operation) noexcept {
  static const bool emulates = !setting("OUTCORE_THROTTLE").empty() || !setting("OUTCORE_REQUESTS").empty();
  if (!emulates) return Engine::run_plainly(operation);
  try {
    return default_engine().run(operation);
  } catch (const Error& error) {
    return -error.errno_value();
  }
}

std::string emulation() {
  std::string text;
  if (const std::string throttle = setting("OUTCORE_THROTTLE"); !throttle.empty())
    text = "storage: " + Throttle::parse(throttle).describe();
  const Requests requests = requests_wanted();
  if (requests == Requests::asynchronous) return text;
  text += text.empty() ? "" : "; ";
  return text +
         (requests == Requests::blocking ? "blocking requests" : "records as of GNU Fortran, blocking");
}

std::string default_engine_reason() {
  static_cast<void>(default_engine());
  std::lock_guard lock(chosen().mutex);
  return chosen().reason;
}

}  // namespace outcore::device
