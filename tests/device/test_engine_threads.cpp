#include "conformance/engine.hpp"

TEST("the thread engine has a name") {
  check::equal(std::string(outcore::device::make_thread_engine(1)->name()), "threads");
}

int main(int argc, char** argv) {
  conformance::add("threads", [] { return outcore::device::make_thread_engine(); });
  conformance::add("one thread", [] { return outcore::device::make_thread_engine(1); });
  return check::run(argc, argv);
}
