#include "outcore/extend/transport.hpp"
#include "support/check.hpp"
#include "transport/poll_backoff.hpp"

using outcore::transport::PollBackoff;

namespace {

/// Uses processor time in this thread.
void use(std::chrono::microseconds time) {
  const auto used = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  };
  for (const auto end = used() + time; used() < end;) {
  }
}

}  // namespace

TEST("naps are as many times as long as looks, the first of which is not known") {
  PollBackoff backoff(100);
  check::equal(backoff.nap().count(), 0);
  for (int i = 0; i < 60; ++i) {
    use(std::chrono::microseconds(200));
    (void)backoff.nap();
  }
  const auto nap = backoff.nap();
  check::is_true(nap > std::chrono::milliseconds(12), "shorter than looks ask for");
}

TEST("what costs nothing may be done at any time") {
  PollBackoff backoff(100);
  for (int i = 0; i < 60; ++i) check::is_true(backoff.nap() < std::chrono::milliseconds(5));
}

TEST_MAIN
