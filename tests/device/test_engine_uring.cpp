#include "conformance.hpp"

using outcore::Error;
using outcore::device::make_uring_engine;

TEST("a depth that no ring has is refused") {
  check::equal(check::throws<Error>([] { static_cast<void>(make_uring_engine(0)); }).errno_value(), EINVAL);
}

int main(int argc, char** argv) {
  try {
    static_cast<void>(make_uring_engine());
  } catch (const Error& error) {
    std::printf("skipped: %s\n", error.what());
    return 0;
  }
  conformance::add("uring", [] { return make_uring_engine(); });
  conformance::add("uring of depth 2", [] { return make_uring_engine(2); });
  return check::run(argc, argv);
}
