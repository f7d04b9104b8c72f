#include "conformance/messages.hpp"
#include "outcore/extend/transport.hpp"

TEST("self is alone") {
  const auto transport = outcore::transport::self();
  check::equal(transport->rank(), 0);
  check::equal(transport->size(), 1);
}

int main(int argc, char** argv) {
  const auto run = [](int, const conformance::Body& body) { body(*outcore::transport::self()); };
  conformance::add("self", run, 1);
  conformance::add_messages("self", run, 1);
  return check::run(argc, argv);
}
