// A transport for the processes of an MPI communicator.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>

#include "outcore/error.hpp"
#include "transport/host.hpp"
#include "transport/mpi/calls.hpp"
#include "transport/mpi/finalize_watch.hpp"
#include "transport/mpi/messages.hpp"
#include "transport/mpi/session.hpp"
#include "transport/mpi/window.hpp"
#include "transport/node_memory.hpp"

namespace outcore::transport::over_mpi {
namespace {

constexpr std::size_t numbers_at_once = 1 << 26;  // of a reduction: MPI counts in int

MPI_Op operation(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return MPI_SUM;
    case Reduction::min:
      return MPI_MIN;
    case Reduction::max:
      break;
  }
  return MPI_MAX;
}

/// "MPICH 5.0.2", "Open MPI v5.0.11"
std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string line(text, static_cast<std::size_t>(length));
  line.resize(std::min({line.find('\n'), line.find(','), line.size()}));
  std::replace(line.begin(), line.end(), '\t', ' ');
  if (const auto word = line.find(" Version:"); word != std::string::npos) line.erase(word, 9);
  std::string joined;
  for (const char each : line)
    if (each != ' ' || (!joined.empty() && joined.back() != ' ')) joined += each;
  return joined;
}

class Mpi final : public Transport {
 public:
  /// Takes ownership of the communicator.
  Mpi(MPI_Comm comm, std::shared_ptr<Session> session) : comm_(comm), session_(std::move(session)) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    check(MPI_Comm_rank(comm_, &rank_), "ask for the rank");
    check(MPI_Comm_size(comm_, &size_), "ask for the number of processes");
    session_ranks_.resize(static_cast<std::size_t>(size_));
    std::iota(session_ranks_.begin(), session_ranks_.end(), 0);
  }

  ~Mpi() override {
    if (!finalized() && !session_->broken()) MPI_Comm_free(&comm_);
  }

  std::string description() const override { return "mpi: " + library_version(); }
  std::string host() const override { return host_name(); }

  void watch() override { session_->watch(session_ranks_); }

  void barrier() override {
    run("wait for the other processes", [&](MPI_Request* request) { return MPI_Ibarrier(comm_, request); });
  }

  void broadcast(std::span<std::byte> data, int root) override {
    with_bytes(data.size(), [&](int count, MPI_Datatype type) {
      run("broadcast",
          [&](MPI_Request* request) { return MPI_Ibcast(data.data(), count, type, root, comm_, request); });
    });
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    with_bytes(mine.size(), [&](int count, MPI_Datatype type) {
      run("gather", [&](MPI_Request* request) {
        return MPI_Iallgather(mine.data(), count, type, all.data(), count, type, comm_, request);
      });
    });
  }

  void all_reduce(std::span<double> values, Reduction reduction) override {
    for (std::size_t done = 0; done < values.size(); done += numbers_at_once) {
      const auto part = values.subspan(done, std::min(numbers_at_once, values.size() - done));
      const auto count = static_cast<int>(part.size());
      // Not all algorithms of MPI_Allreduce give the same bits at all processes: sums are made at one.
      run("add up", [&](MPI_Request* request) {
        return MPI_Ireduce(rank_ == 0 ? MPI_IN_PLACE : part.data(), rank_ == 0 ? part.data() : nullptr, count,
                           MPI_DOUBLE, operation(reduction), 0, comm_, request);
      });
      broadcast(std::as_writable_bytes(part), 0);
    }
  }

  void all_reduce(std::span<std::int64_t> values, Reduction reduction) override {
    for (std::size_t done = 0; done < values.size(); done += numbers_at_once) {
      const auto part = values.subspan(done, std::min(numbers_at_once, values.size() - done));
      run("add up", [&](MPI_Request* request) {
        return MPI_Iallreduce(MPI_IN_PLACE, part.data(), static_cast<int>(part.size()), MPI_INT64_T,
                              operation(reduction), comm_, request);
      });
    }
  }

  std::unique_ptr<Transport> split(int color, int key) override {
    barrier();  // MPI_Comm_split waits without sleeping
    MPI_Comm part = MPI_COMM_NULL;
    {
      const WatchedMpiCall watched("MPI_Comm_split");
      check(MPI_Comm_split(comm_, color < 0 ? MPI_UNDEFINED : color, key, &part), "split a communicator");
    }
    if (part == MPI_COMM_NULL) return nullptr;
    auto result = std::make_unique<Mpi>(part, session_);
    const int mine = session_ranks_[static_cast<std::size_t>(rank_)];
    result->all_gather(std::as_bytes(std::span(&mine, 1)),
                       std::as_writable_bytes(std::span(result->session_ranks_)));
    return result;
  }

  std::unique_ptr<Messages> messages() override {
    check_alive();
    return over_mpi::messages(*this, comm_, session_, session_ranks_);
  }

  std::unique_ptr<Segment> allocate(std::size_t size_bytes, bool shared) override {
    if (shared) return node_memory(*this, size_bytes);
    return window(*this, comm_, size_bytes, session_, session_ranks_);
  }

 private:
  template <class Call>
  void run(const char* attempted, const Call& call) {
    check_alive();
    session_->check_whole();
    MPI_Request request = MPI_REQUEST_NULL;
    check(call(&request), attempted);
    wait(request, attempted, [this] { watch(); });
    session_->traffic();
  }

  MPI_Comm comm_;
  std::shared_ptr<Session> session_;
  std::vector<int> session_ranks_;  // ranks of the processes in the session
};

}  // namespace
}  // namespace outcore::transport::over_mpi

/// The symbol that the core looks up in this library.
extern "C" void outcore_mpi_watch_in_finalize() {
  outcore::transport::over_mpi::watch_in_finalize();
}

extern "C" outcore::transport::Transport* outcore_mpi_attach(int fortran_communicator) {
  namespace mpi = outcore::transport::over_mpi;
  int initialized = 0, level = 0;
  MPI_Initialized(&initialized);
  if (!initialized || mpi::finalized())
    throw outcore::Error(
        ENOTSUP, {.attempted = "use MPI",
                  .detail = initialized ? "MPI_Finalize was called" : "MPI_Init_thread was not called"});
  MPI_Query_thread(&level);
  if (level != MPI_THREAD_MULTIPLE)
    throw outcore::Error(ENOTSUP,
                         {.attempted = "use MPI",
                          .detail = "it was not initialised for several threads: call MPI_Init_thread with "
                                    "MPI_THREAD_MULTIPLE, or leave mpi4py.rc.thread_level as it is"});
  const MPI_Comm given = MPI_Comm_f2c(fortran_communicator);
  if (given == MPI_COMM_NULL)
    throw outcore::Error(EINVAL, {.attempted = "use a communicator", .detail = "it is MPI_COMM_NULL"});
  int inter = 0;
  mpi::check(MPI_Comm_test_inter(given, &inter), "use a communicator");
  if (inter)
    throw outcore::Error(EINVAL, {.attempted = "use a communicator", .detail = "it is an intercommunicator"});
  mpi::watch_in_finalize();
  // Until the processes know one another's process numbers. Processes outside the communicator may end.
  int of_world = MPI_UNEQUAL;
  mpi::check(MPI_Comm_compare(given, MPI_COMM_WORLD, &of_world), "use a communicator");
  std::optional<outcore::transport::WatchedCall> watched;
  if (of_world != MPI_UNEQUAL) {
    using outcore::transport::one_beside_has_ended;
    watched.emplace("the first exchange of a world", one_beside_has_ended, mpi::abort_job);
  }
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(MPI_Comm_idup(given, &comm, &request), "duplicate a communicator");
  mpi::wait(request, "duplicate a communicator");
  return new mpi::Mpi(comm, std::make_shared<mpi::Session>(comm));
}
