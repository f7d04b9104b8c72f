// Threads of the library.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <memory>
#include <thread>
#include <utility>

#include "outcore/device/engine.hpp"

namespace outcore::device {

/// A named thread that takes no signals: they belong to the threads of the program.
template <class Body>
std::thread start_thread(const char* name, Body body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread(std::move(body));
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

/// One that on a free core starts at once, but never takes the core of the thread that woke it: a nonblocking
/// call would last as long as the copy it asks for.
template <class Body>
std::thread start_worker(const char* name, Body body) {
  std::thread thread = start_thread(name, std::move(body));
  const sched_param none{};
  pthread_setschedparam(thread.native_handle(), SCHED_BATCH, &none);  // inherited by the kernel's own workers
  return thread;
}

/// All operations of a task, one after another, in the calling thread.
inline void run_to_end(Engine& engine, Task& task) noexcept {
  while (const Operation* operation = task.next()) task.result(engine.run(*operation));
}

}  // namespace outcore::device
