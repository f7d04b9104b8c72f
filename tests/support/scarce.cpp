// Stands before the C library, by LD_PRELOAD: threads that cannot be started, on purpose. For tests.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace {

std::atomic<long> left{-1}, asked{0};

}  // namespace

/// From now on so many threads can be started, and no more; -1: any number.
extern "C" void outcore_scarce_threads(long count) {
  asked = 0;
  left = count;
}

/// How many were asked for since then.
extern "C" long outcore_scarce_asked() {
  return asked;
}

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                              void* argument) {
  static const auto next = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  const long before = asked++, most = left;
  return most >= 0 && before >= most ? EAGAIN : next(thread, attributes, body, argument);
}
