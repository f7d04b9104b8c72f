#include "transport/mpi/window.hpp"

#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "base/pause.hpp"
#include "base/request_state.hpp"
#include "outcore/error.hpp"
#include "transport/agree.hpp"
#include "transport/mapping.hpp"
#include "transport/mpi/finalize_watch.hpp"
#include "transport/strided_transfer.hpp"

namespace outcore::transport::over_mpi {
namespace {

constexpr std::int64_t max_bytes = 1 << 30;  // of one operation: MPI counts in int
// Large transfers over TCP progress only inside calls of MPI, so one-sided operations must be short.
constexpr std::chrono::microseconds max_nap{100};
constexpr int naps_to_watch = 10'000;      // a second
constexpr std::int64_t slow_ns = 200'000;  // of a flush at a target that its thread serves

/// The elements of a transfer, with axes sorted so that the target is traversed in order, with positive
/// strides.
struct Walk {
  explicit Walk(const StridedTransfer& transfer) : offset(transfer.offset), memory(transfer.memory) {
    for (int i = 0; i < transfer.count.rank(); ++i) {
      Axis axis{transfer.count[i], transfer.stride_bytes[i], transfer.memory_stride_bytes[i]};
      if (axis.count == 1) continue;
      if (axis.target < 0) {
        offset += (axis.count - 1) * axis.target;
        memory += (axis.count - 1) * axis.memory;
        axis.target = -axis.target;
        axis.memory = -axis.memory;
      }
      axes[static_cast<std::size_t>(rank++)] = axis;
    }
    std::stable_sort(axes.begin(), axes.begin() + rank,
                     [](const Axis& a, const Axis& b) { return a.target > b.target; });
  }
  [[nodiscard]] std::int64_t elements() const {
    std::int64_t product = 1;
    for (int i = 0; i < rank; ++i) product *= axes[static_cast<std::size_t>(i)].count;
    return product;
  }
  struct Axis {
    std::int64_t count, target, memory;
  };
  std::int64_t offset;
  std::byte* memory;
  std::array<Axis, max_rank> axes;
  int rank = 0;
};

/// One side of a walk as arguments for MPI.
struct Layout {
  Type type;
  int count;
};

Layout layout(const Walk& walk, std::int64_t Walk::Axis::* stride, ElementType element) {
  const Type base(datatype(element));
  const auto size = static_cast<std::int64_t>(outcore::size_bytes(element));
  std::int64_t run = 1;
  int i = walk.rank - 1;
  for (; i >= 0 && walk.axes[static_cast<std::size_t>(i)].*stride == run * size; --i)
    run *= walk.axes[static_cast<std::size_t>(i)].count;
  if (i < 0) return {Type(base.get()), static_cast<int>(run)};
  Type type = Type::contiguous(run, base);
  for (; i >= 0; --i) {
    const auto& axis = walk.axes[static_cast<std::size_t>(i)];
    type = Type::strided(axis.count, axis.*stride, type);
  }
  type.commit();
  return {std::move(type), 1};
}

/// Calls `visit` with walks of at most max_bytes that together make the given one.
template <class Visit>
void for_each_part(Walk walk, std::int64_t element_bytes, const Visit& visit) {
  if (walk.elements() * element_bytes <= max_bytes) return visit(walk);
  auto& axis = walk.axes[0];
  if (axis.count == 1) {  // cannot be divided further: go on with the next
    std::rotate(walk.axes.begin(), walk.axes.begin() + 1, walk.axes.begin() + walk.rank);
    --walk.rank;
    return for_each_part(walk, element_bytes, visit);
  }
  Walk rest = walk;
  axis.count /= 2;
  rest.axes[0].count -= axis.count;
  rest.offset += axis.count * axis.target;
  rest.memory += axis.count * axis.memory;
  for_each_part(walk, element_bytes, visit);
  for_each_part(rest, element_bytes, visit);
}

/// alpha times the elements of a walk, contiguous.
template <class Element>
void scale(std::byte* to, const std::byte* from, const Walk& walk, int axis, Element alpha,
           std::int64_t& done) {
  if (axis == walk.rank) {
    Element value;
    std::memcpy(&value, from, sizeof value);
    value = alpha * value;
    std::memcpy(to + done++ * static_cast<std::int64_t>(sizeof value), &value, sizeof value);
    return;
  }
  const auto& its = walk.axes[static_cast<std::size_t>(axis)];
  for (std::int64_t i = 0; i < its.count; ++i) scale(to, from + i * its.memory, walk, axis + 1, alpha, done);
}

std::vector<std::byte> scaled(const Walk& walk, ElementType type, const void* alpha) {
  std::vector<std::byte> values(static_cast<std::size_t>(walk.elements()) * outcore::size_bytes(type));
  visit(type, [&](auto factor) {
    std::memcpy(&factor, alpha, sizeof factor);
    std::int64_t done = 0;
    scale(values.data(), walk.memory, walk, 0, factor, done);
  });
  return values;
}

/// Requests of MPI, with the memory they need.
class Pending final : public FinishedByWaiter {
 public:
  Pending(std::shared_ptr<Session> session, int process, const char* attempted)
      : session_(std::move(session)), process_(process), attempted_(attempted) {}
  ~Pending() override { finish_quietly(); }

  std::vector<MPI_Request> requests;
  std::vector<std::vector<std::byte>> memory;

  [[nodiscard]] bool done() const noexcept override { return finished() || arrived_; }
  bool help() noexcept override {
    const std::unique_lock lock(ending(), std::try_to_lock);
    if (!lock || done()) return true;  // another thread does it
    try {
      arrived_ = test();
    } catch (...) {
      failure_ = std::current_exception();
      arrived_ = true;
    }
    return true;
  }

 private:
  bool test() {
    if (requests.empty()) return true;
    session_->check_whole();
    if (!over_mpi::test(requests, attempted_)) return false;
    requests.clear();
    return true;
  }
  void end() override {
    if (failure_) std::rethrow_exception(failure_);
    for (int attempt = 0; attempt < 20; ++attempt) {
      if (test()) return;
      std::this_thread::yield();
    }
    Pause pause(max_nap);
    for (int naps = 0; !test(); ++naps) {
      if (naps >= 3) session_->poke(process_);
      if (naps % naps_to_watch == naps_to_watch - 1) session_->watch({&process_, 1});
      pause();
    }
  }

  std::shared_ptr<Session> session_;
  int process_;
  const char* attempted_;
  std::atomic<bool> arrived_{false};
  std::exception_ptr failure_;
};

/// Zeros memory that may not be zero. Memory that the system has just allocated is zero, and is not touched,
/// which would take physical memory.
void zero(std::byte* begin, std::size_t size_bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t head =
      std::min(size_bytes, (page - reinterpret_cast<std::uintptr_t>(begin) % page) % page);
  std::memset(begin, 0, head);
  const std::size_t pages = (size_bytes - head) / page;
  std::vector<unsigned char> resident(pages, 1);
  if (pages > 0) (void)mincore(begin + head, pages * page, resident.data());
  for (std::size_t i = 0; i < pages; ++i)
    if (resident[i] & 1) std::memset(begin + head + i * page, 0, page);
  std::memset(begin + head + pages * page, 0, size_bytes - head - pages * page);
}

class Window final : public Segment {
 public:
  Window(Transport& transport, MPI_Comm comm, std::size_t size_bytes, std::shared_ptr<Session> session,
         std::vector<int> session_ranks)
      : Window(Unopened{}, transport, comm, size_bytes, std::move(session), std::move(session_ranks)) {
    agree(transport, [&] {     // zero at all processes, and served
      known_.emplace(local_);  // known to the procedure calls between processes of a host
      zero(local_, size_bytes);
      check(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_), "open one-sided memory");
      locked_ = true;
      check(MPI_Win_sync(window_), "open one-sided memory");
      session_->serve();
    });
  }

 private:
  struct Unopened {};
  Window(Unopened, Transport& transport, MPI_Comm comm, std::size_t size_bytes,
         std::shared_ptr<Session> session, std::vector<int> session_ranks)
      : session_(std::move(session)), session_ranks_(std::move(session_ranks)), rank_(transport.rank()) {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "same_size", "true");
    MPI_Info_set(info, "same_disp_unit", "true");
    MPI_Info_set(info, "accumulate_ordering", "none");
    if (!fits_shared_memory(transport, size_bytes)) MPI_Info_set(info, "alloc_shm", "false");
    void* base = nullptr;
    int code = MPI_SUCCESS;
    agree(transport, [&] {  // all processes are here now: the following waits for none for long
      const auto rounded = std::max<std::size_t>((size_bytes + 4095) / 4096 * 4096, 4096);
      bytes_ = static_cast<MPI_Aint>(rounded);
    });
    {
      const WatchedMpiCall watched("MPI_Win_allocate");
      code = MPI_Win_allocate(bytes_, 1, info, comm, &base, &window_);
    }
    MPI_Info_free(&info);
    agree(transport, [&] { check(code, "allocate one-sided memory"); });
    local_ = static_cast<std::byte*>(base);
    size_bytes_ = size_bytes;
    MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
  }

 public:
  ~Window() override {
    known_.reset();
    if (finalized() || session_->broken()) return;
    const WatchedMpiCall watched("MPI_Win_free");
    if (locked_) MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }

  std::byte* direct(int process) const noexcept override { return process == rank_ ? local_ : nullptr; }

  Request get(const StridedTransfer& transfer) override {
    return start(transfer, "get",
                 [&](const Walk& walk, const Layout& mine, const Layout& its, MPI_Request* request) {
                   return MPI_Rget(walk.memory, mine.count, mine.type.get(), transfer.process, walk.offset,
                                   its.count, its.type.get(), window_, request);
                 });
  }

  Request put(const StridedTransfer& transfer) override {
    dirty_ = true;
    Request put = start(transfer, "put",
                        [&](const Walk& walk, const Layout& mine, const Layout& its, MPI_Request* request) {
                          return MPI_Rput(walk.memory, mine.count, mine.type.get(), transfer.process,
                                          walk.offset, its.count, its.type.get(), window_, request);
                        });
    dirty_ = true;  // again, because a flush of another thread may have come before it had begun
    return put;
  }

  Request accumulate(const StridedTransfer& transfer, const void* alpha) override {
    check_transfer(transfer, static_cast<int>(session_ranks_.size()), size_bytes_, "accumulate");
    check_accumulated(transfer.type);
    if (is_empty(transfer)) return {};
    dirty_ = true;
    auto pending = begin(transfer, "accumulate");
    const bool as_is = is_contiguous(transfer) && is_one(transfer.type, alpha);
    for_each_part(Walk(transfer), element_bytes(transfer), [&](const Walk& walk) {
      const Layout its = layout(walk, &Walk::Axis::target, transfer.type);
      const std::byte* memory = walk.memory;
      if (!as_is) memory = pending->memory.emplace_back(scaled(walk, transfer.type, alpha)).data();
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Raccumulate(memory, static_cast<int>(walk.elements()), datatype(transfer.type),
                            transfer.process, walk.offset, its.count, its.type.get(), MPI_SUM, window_,
                            &request),
            "accumulate");
      pending->requests.push_back(request);
    });
    dirty_ = true;  // as for puts
    return begun(std::move(pending));
  }

  std::int64_t fetch_add(int process, std::int64_t offset, std::int64_t value) override {
    check_number(process, offset, static_cast<int>(session_ranks_.size()), size_bytes_);
    ready();
    std::int64_t before = 0;
    // A mere read must not write: a processor may change the number meanwhile.
    const MPI_Op op = value == 0 ? MPI_NO_OP : MPI_SUM;
    check(MPI_Fetch_and_op(&value, &before, MPI_INT64_T, process, offset, op, window_), "fetch and add");
    flush_one(process);
    return before;
  }

  std::int64_t compare_swap(int process, std::int64_t offset, std::int64_t expected,
                            std::int64_t value) override {
    check_number(process, offset, static_cast<int>(session_ranks_.size()), size_bytes_);
    ready();
    std::int64_t before = 0;
    check(MPI_Compare_and_swap(&value, &expected, &before, MPI_INT64_T, process, offset, window_),
          "compare and swap");
    flush_one(process);
    return before;
  }

  void flush() override {
    ready();
    const std::lock_guard guard(flushing_);  // a thread with nothing to do has waited for the one that did it
    if (dirty_.exchange(false)) {
      if (slow_)
        for (std::size_t i = 0; i < session_ranks_.size(); ++i)
          if (static_cast<int>(i) != rank_) session_->poke(session_ranks_[i]);
      timed([&] { check(MPI_Win_flush_all(window_), "flush one-sided memory"); });
    }
    check(MPI_Win_sync(window_), "flush one-sided memory");
  }

 private:
  void ready() const {
    check_alive();
    session_->check_whole();
  }

  /// MPI may put the memory of a node into /dev/shm; a process that touches more than fits there is killed.
  /// Measured: [M24].
  static bool fits_shared_memory(Transport& transport, std::size_t size_bytes) {
    struct statvfs status{};
    std::int64_t fits = 1;
    if (statvfs("/dev/shm", &status) == 0) {
      const double free_bytes = static_cast<double>(status.f_bavail) * static_cast<double>(status.f_frsize);
      fits = static_cast<double>(size_bytes) * transport.size() < free_bytes / 2 ? 1 : 0;
    }
    transport.all_reduce(std::span(&fits, 1), Reduction::min);
    return fits == 1;
  }

  static std::int64_t element_bytes(const StridedTransfer& transfer) {
    return static_cast<std::int64_t>(outcore::size_bytes(transfer.type));
  }

  static bool is_one(ElementType type, const void* alpha) {
    return visit(type, [&](auto value) {
      std::memcpy(&value, alpha, sizeof value);
      return value == decltype(value)(1);
    });
  }

  std::shared_ptr<Pending> begin(const StridedTransfer& transfer, const char* attempted) {
    ready();
    session_->traffic();
    return std::make_shared<Pending>(session_, session_ranks_[static_cast<std::size_t>(transfer.process)],
                                     attempted);
  }

  static Request begun(std::shared_ptr<Pending> pending) {
    pending->help();
    if (pending->done()) {
      pending->deliver();
      return {};
    }
    return Request(std::move(pending));
  }

  template <class Call>
  Request start(const StridedTransfer& transfer, const char* attempted, const Call& call) {
    check_transfer(transfer, static_cast<int>(session_ranks_.size()), size_bytes_, attempted);
    if (is_empty(transfer)) return {};
    auto pending = begin(transfer, attempted);
    for_each_part(Walk(transfer), element_bytes(transfer), [&](const Walk& walk) {
      const Layout mine = layout(walk, &Walk::Axis::memory, transfer.type);
      const Layout its = layout(walk, &Walk::Axis::target, transfer.type);
      MPI_Request request = MPI_REQUEST_NULL;
      check(call(walk, mine, its, &request), attempted);
      pending->requests.push_back(request);
    });
    return begun(std::move(pending));
  }

  void flush_one(int process) {
    session_->traffic();
    if (slow_ && process != rank_) session_->poke(session_ranks_[static_cast<std::size_t>(process)]);
    timed([&] { check(MPI_Win_flush(process, window_), "flush one-sided memory"); });
  }

  /// Notes whether targets answer by themselves, or only when their thread calls MPI.
  template <class Body>
  void timed(const Body& body) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - start;
    slow_.store(taken.count() > slow_ns, std::memory_order_relaxed);
  }

  std::shared_ptr<Session> session_;
  std::vector<int> session_ranks_;
  int rank_;
  MPI_Aint bytes_ = 0;
  bool locked_ = false;
  MPI_Win window_ = MPI_WIN_NULL;
  std::optional<ForeignMapping> known_;
  std::atomic<bool> dirty_{false};  // puts or accumulates may not have arrived
  std::mutex flushing_;
  std::atomic<bool> slow_{false};
};

}  // namespace

std::unique_ptr<Segment> window(Transport& transport, MPI_Comm comm, std::size_t size_bytes,
                                std::shared_ptr<Session> session, std::vector<int> session_ranks) {
  return std::make_unique<Window>(transport, comm, size_bytes, std::move(session), std::move(session_ranks));
}

}  // namespace outcore::transport::over_mpi
