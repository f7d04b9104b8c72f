// For tests: preloaded by LD_PRELOAD, this makes the start of threads fail on purpose.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace {

std::atomic<long> left{-1}, asked{0};

}  // namespace

/// From now on only so many threads can be started; -1 allows any number.
extern "C" void outcore_scarce_threads(long count) {
  asked = 0;
  left = count;
}

/// The number of threads requested since then.
extern "C" long outcore_scarce_asked() {
  return asked;
}

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                              void* argument) {
  static const auto next = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  const long before = asked++, most = left;
  return most >= 0 && before >= most ? EAGAIN : next(thread, attributes, body, argument);
}
