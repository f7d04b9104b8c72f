#include <chrono>
#include <memory>
#include <thread>

#include "conformance/engine.hpp"

using outcore::Error;
using outcore::device::make_uring_engine;

namespace {

struct Nothing final : outcore::device::Task {
  const outcore::device::Operation* next() noexcept override { return nullptr; }
  void result(std::int64_t) noexcept override {}
};

}  // namespace

TEST("a task that ends without an operation does not keep stop waiting") {
  for (int i = 0; i < 200; ++i) {
    const auto engine = make_uring_engine(2);
    std::this_thread::sleep_for(std::chrono::microseconds(50 * (i % 4)));  // the ring's thread sleeps, or not
    engine->submit(std::make_shared<Nothing>());
    engine->stop();
  }
}

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
