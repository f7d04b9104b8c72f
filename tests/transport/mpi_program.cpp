// The conformance suite over MPI, run by its launcher: every process runs every test, process 0 reports. A
// process whose test fails ends the job, so that the others do not wait for it.
#include <fcntl.h>
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cmath>

#include "conformance/messages.hpp"
#include "outcore/world.hpp"

namespace {

using namespace outcore;
using namespace conformance;

/// The target computes without calls until others have accessed its memory. Errors are reported after the
/// segment is freed, which is collective: otherwise the others would wait for ever.
void operations_complete_while_the_target_computes(Transport& transport) {
  constexpr std::int64_t counter = 800000;
  std::vector<double> mine(100000, 1.5), got(100000);
  bool reached = true;
  {
    const auto segment = transport.allocate(counter + 8, false);
    segment->put(line(transport.rank(), 0, mine.data(), 100000)).wait();
    segment->flush();
    transport.barrier();
    if (transport.rank() == 0) {
      std::byte* const own = segment->direct(0) + counter;
      const std::atomic_ref done(*reinterpret_cast<std::int64_t*>(own));
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(100);
      volatile double sum = 0;
      while (done.load() < transport.size() - 1 && std::chrono::steady_clock::now() < end)
        sum = sum + std::sqrt(sum + 1);
      reached = done.load() == transport.size() - 1;
    } else {
      const double alpha = 2;
      for (int i = 0; i < 20; ++i) {
        segment->get(line(0, 0, got.data(), 100000)).wait();
        segment->accumulate(line(0, 0, mine.data(), 10), &alpha).wait();
        segment->flush();
      }
      reached = got[99999] == 1.5;
      segment->fetch_add(0, counter, 1);
    }
    transport.barrier();
  }
  check::is_true(reached, "the target was not reached before it called something");
}

void many_worlds_leave_nothing_behind(Transport& transport) {
  const auto descriptors = [] {
    int count = 0;
    for (int fd = 0; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return count;
  };
  int before = 0;
  for (int i = 0; i < 60; ++i) {
    WorldOptions options;
    options.node_for_each_process = i % 2 == 0;
    World world(transport.duplicate(), options);
    Counter counter(world);
    counter.next();
    const auto region = world.allocate(1000, "test");
    if (i == 3) before = descriptors();
  }
  check::equal(descriptors(), before);
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank > 0 && !std::freopen("/dev/null", "w", stdout)) return 1;
  const auto run = [&](int, const Body& body) {
    try {
      const auto transport = transport::mpi(MPI_Comm_c2f(MPI_COMM_WORLD));
      body(*transport);
      transport->barrier();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "process %d: %s\n", rank, error.what());
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  };
  conformance::add("mpi", run, size);
  conformance::add_messages("mpi", run, size);
  check::tests().push_back({"operations complete while the target computes",
                            [&] { run(size, operations_complete_while_the_target_computes); }});
  check::tests().push_back(
      {"many worlds leave nothing behind", [&] { run(size, many_worlds_leave_nothing_behind); }});
  const int status = check::run(argc, argv);
  MPI_Finalize();
  return status;
}
