#include "conformance/messages.hpp"
#include "outcore/extend/transport.hpp"

using namespace outcore;

TEST("an error in one thread ends the waiting of the others") {
  const auto error = check::throws<Error>([] {
    transport::run_threads(3, [](const std::unique_ptr<transport::Transport>& transport) {
      if (transport->rank() == 1) throw Error(EIO, {.attempted = "fail on purpose"});
      transport->barrier();
    });
  });
  check::equal(error.errno_value(), EIO);
}

TEST("an error ends the waiting in groups within") {
  const auto error = check::throws<Error>([] {
    transport::run_threads(4, [](const std::unique_ptr<transport::Transport>& transport) {
      const auto half = transport->split(transport->rank() / 2, 0);
      if (transport->rank() == 3) throw Error(EIO, {.attempted = "fail on purpose"});
      for (int i = 0; i < 1000; ++i) half->barrier();
      transport->barrier();
    });
  });
  check::equal(error.errno_value(), EIO);
}

TEST("at least one thread") {
  check::equal(check::throws<Error>([] { transport::run_threads(0, [](auto) {}); }).errno_value(), EINVAL);
}

TEST("memory that is not shared hides the parts of others, and a get waits to be waited for") {
  transport::run_threads(2, [](const std::unique_ptr<transport::Transport>& transport) {
    const auto segment = transport->allocate(64, false);
    check::is_true(segment->direct(1 - transport->rank()) == nullptr);
    double one = 1, got = 0;
    segment->put(conformance::line(transport->rank(), 0, &one, 1)).wait();
    transport->barrier();
    auto operation = segment->get(conformance::line(1 - transport->rank(), 0, &got, 1));
    check::equal(got, 0.0);
    operation.wait();
    check::equal(got, 1.0);
    transport->barrier();
  });
}

int main(int argc, char** argv) {
  const auto run = [](int count, const conformance::Body& body) {
    transport::run_threads(count,
                           [&](const std::unique_ptr<transport::Transport>& transport) { body(*transport); });
  };
  for (const int count : {1, 2, 4, 7}) conformance::add("threads", run, count);
  for (const int count : {1, 2, 4}) conformance::add_messages("threads", run, count);
  return check::run(argc, argv);
}
