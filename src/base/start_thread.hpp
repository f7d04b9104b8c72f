// How the library starts threads.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "outcore/error.hpp"

namespace outcore {

/// Starts a named thread that takes no signals: these belong to the threads of the program. Throws
/// Error(EAGAIN).
template <class Body>
std::thread start_thread(const char* name, Body body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread(std::move(body));
  } catch (const std::system_error& error) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw Error(
        error.code().value(),
        {.attempted = std::string("start the thread ") + name,
         .detail = "the number of processes (ulimit -u, pids of the control group) or the address space "
                   "(ulimit -v) is limited"});
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace outcore
