#include "conformance.hpp"

TEST("self is alone") {
  const auto transport = outcore::transport::self();
  check::equal(transport->rank(), 0);
  check::equal(transport->size(), 1);
}

int main(int argc, char** argv) {
  conformance::add("self", [](int, const conformance::Body& body) { body(*outcore::transport::self()); }, 1);
  return check::run(argc, argv);
}
