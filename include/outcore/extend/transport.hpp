// Transport: how processes reach one another. It has collectives and one-sided memory, and knows nothing of
// arrays or files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "outcore/api.h"
#include "outcore/box.hpp"
#include "outcore/element_type.hpp"
#include "outcore/extend/messages.hpp"
#include "outcore/origin.hpp"
#include "outcore/request.hpp"

namespace outcore::transport {

enum class Reduction : std::uint8_t { sum, min, max };

/// Elements with strides in the segment of a process, and the same elements in memory of the caller.
struct StridedTransfer {
  int process = 0;
  std::int64_t offset = 0;  ///< of the first element in the segment, in bytes
  Extents stride_bytes;     ///< in the segment
  std::byte* memory = nullptr;
  Extents memory_stride_bytes;
  Extents count;
  ElementType type = ElementType::float64;
};

/// One-sided memory: a part of equal size in each process, initially zero. Gets, puts and accumulates need no
/// help of the target process, and complete while it computes. A transfer that is not inside the part of its
/// process is Error(EINVAL). Thread-safe. Freed by its destructor, which is collective.
class OUTCORE_API Segment {
 public:
  virtual ~Segment() = default;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  [[nodiscard]] std::size_t size_bytes() const noexcept { return size_bytes_; }  ///< of each part
  [[nodiscard]] std::byte* local() const noexcept { return local_; }
  /// The part of a process if this process can load and store it, else null; never null for the own part.
  [[nodiscard]] virtual std::byte* direct(int process) const noexcept = 0;

  /// One-sided operations. When the request is done, the data of a get is here, and the memory of a put or
  /// accumulate may be reused. The destructor of the last copy of a request waits.
  [[nodiscard]] virtual Request get(const StridedTransfer& transfer) = 0;
  [[nodiscard]] virtual Request put(const StridedTransfer& transfer) = 0;
  /// Adds alpha times the memory. Each element is updated atomically with regard to other accumulates.
  /// `alpha` points to one element of the type. Types int32 and larger, float and complex.
  [[nodiscard]] virtual Request accumulate(const StridedTransfer& transfer, const void* alpha) = 0;
  /// Atomic, on an aligned int64 in the segment; return the value before.
  virtual std::int64_t fetch_add(int process, std::int64_t offset, std::int64_t value) = 0;
  virtual std::int64_t compare_swap(int process, std::int64_t offset, std::int64_t expected,
                                    std::int64_t value) = 0;
  /// Returns when all puts and accumulates of this process have arrived, and are visible to gets of any
  /// process. Loads of this process then see what others put into its part before they told it so.
  virtual void flush() = 0;
  /// Zeros a range of the own part; its memory goes back to the system where that is possible. Nobody may
  /// use the range meanwhile.
  virtual void clear(std::int64_t offset, std::int64_t size_bytes);
  /// Allocates the memory of a range of the own part now, in large pages where the system has them, because
  /// it is going to be used. Only makes it faster.
  virtual void populate(std::int64_t /*offset*/, std::int64_t /*size_bytes*/) {}

 protected:
  Segment() = default;
  std::byte* local_ = nullptr;
  std::size_t size_bytes_ = 0;
};

/// A group of processes. Collectives must be called by all of them in the same order, by one thread at a
/// time; they sleep while they wait. Threads that need collectives of their own use a duplicate.
class OUTCORE_API Transport {
 public:
  virtual ~Transport() = default;  ///< collective
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  /// "self", "threads", "mpi: MPICH 5.0.2"
  [[nodiscard]] virtual std::string description() const = 0;
  /// Name of the host, equal for processes that share one.
  [[nodiscard]] virtual std::string host() const = 0;

  /// A thread that waits for others by looking at memory calls this each second or so; collectives do it
  /// themselves. Throws Error(ECONNRESET) if a process has died. From then on collectives throw it at once.
  virtual void watch() {}

  virtual void barrier() = 0;
  virtual void broadcast(std::span<std::byte> data, int root) = 0;
  /// `all` is size() times `mine`, in order of rank.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// The result is the same, bit by bit, at all processes.
  virtual void all_reduce(std::span<double> values, Reduction reduction) = 0;
  virtual void all_reduce(std::span<std::int64_t> values, Reduction reduction) = 0;

  /// Processes of equal color form a group, ordered by key, then rank. Null for a negative color.
  [[nodiscard]] virtual std::unique_ptr<Transport> split(int color, int key) = 0;
  [[nodiscard]] std::unique_ptr<Transport> duplicate() { return split(0, rank_); }

  /// Messages between these processes, apart from all others. Collective.
  [[nodiscard]] virtual std::unique_ptr<Messages> messages() = 0;

  /// One-sided memory of `size_bytes` in each process, the same at all. `shared`: all processes are on one
  /// node, and every part can be reached by loads and stores (Segment::direct), back to back in order of
  /// rank.
  [[nodiscard]] virtual std::unique_ptr<Segment> allocate(std::size_t size_bytes, bool shared) = 0;

 protected:
  Transport() = default;
  int rank_ = 0, size_ = 1;
};

/// This process alone.
[[nodiscard]] OUTCORE_API std::unique_ptr<Transport> self();

/// Runs `body` in `count` threads of this process, each with the transport of one rank; returns when all have
/// returned. If one throws, waiting collectives of the others throw Error(ECANCELED), and the first error is
/// rethrown.
OUTCORE_API void run_threads(int count, const std::function<void(std::unique_ptr<Transport>)>& body);

/// The processes of an MPI communicator, given by its Fortran handle (MPI_Comm_c2f, mpi4py's comm.py2f()).
/// MPI must be initialised with MPI_THREAD_MULTIPLE by the program. Uses the MPI library that is loaded;
/// Error(ENOTSUP) if none or two are loaded, or if this build has no shim for it. The communicator is
/// duplicated. After MPI_Finalize everything except the destructor throws Error(ESHUTDOWN).
[[nodiscard]] OUTCORE_API std::unique_ptr<Transport> mpi(int fortran_communicator);

/// The processes of MPI_COMM_WORLD if the program has loaded MPI, as of `mpi`; else this process alone.
/// Error(ENOTSUP) if a launcher says that the job has more processes.
[[nodiscard]] OUTCORE_API std::unique_ptr<Transport> job();

}  // namespace outcore::transport

// Skeletons to copy: one process, which can load and store all memory. Requests are done at once.
#ifdef OUTCORE_SKELETONS

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "outcore/error.hpp"

namespace outcore::transport {

class SkeletonSegment final : public Segment {
 public:
  explicit SkeletonSegment(std::size_t size_bytes) {
    size_bytes_ = size_bytes;
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;  // what is not touched costs nothing
    void* const memory =
        mmap(nullptr, std::max<std::size_t>(size_bytes, 1), PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED)
      throw Error(errno, {.attempted = "allocate one-sided memory", .size_bytes = std::int64_t(size_bytes)});
    local_ = static_cast<std::byte*>(memory);
  }
  ~SkeletonSegment() override { munmap(local_, std::max<std::size_t>(size_bytes_, 1)); }

  [[nodiscard]] std::byte* direct(int process) const noexcept override {
    return process == 0 ? local_ : nullptr;
  }

  [[nodiscard]] Request get(const StridedTransfer& transfer) override {
    if (!check(transfer)) return {};
    copy_strided(transfer.memory, transfer.memory_stride_bytes, local_ + transfer.offset,
                 transfer.stride_bytes, transfer.count, outcore::size_bytes(transfer.type));
    return {};
  }
  [[nodiscard]] Request put(const StridedTransfer& transfer) override {
    if (!check(transfer)) return {};
    copy_strided(local_ + transfer.offset, transfer.stride_bytes, transfer.memory,
                 transfer.memory_stride_bytes, transfer.count, outcore::size_bytes(transfer.type));
    return {};
  }
  [[nodiscard]] Request accumulate(const StridedTransfer& transfer, const void* alpha) override {
    if (!check(transfer)) return {};
    const std::lock_guard lock(mutex_);  // a real one locks parts of it
    visit(transfer.type, [&](auto element) {
      using Element = decltype(element);
      std::memcpy(&element, alpha, sizeof element);
      if constexpr (sizeof element < 4)
        throw Error(EINVAL, {.attempted = "accumulate",
                             .detail = "elements of type " + std::string(name(transfer.type))});
      else
        add<Element>(transfer, element, 0, local_ + transfer.offset, transfer.memory);
    });
    return {};
  }

  std::int64_t fetch_add(int process, std::int64_t offset, std::int64_t value) override {
    return number(process, offset).fetch_add(value);
  }
  std::int64_t compare_swap(int process, std::int64_t offset, std::int64_t expected,
                            std::int64_t value) override {
    (void)number(process, offset).compare_exchange_strong(expected, value);
    return expected;
  }
  void flush() override {}

 private:
  /// Whether there is anything to move. Throws if it would be outside.
  [[nodiscard]] bool check(const StridedTransfer& transfer) const {
    std::int64_t first = transfer.offset, end = first + std::int64_t(outcore::size_bytes(transfer.type));
    for (int i = 0; i < transfer.count.rank(); ++i) {
      const std::int64_t reach = (transfer.count[i] - 1) * transfer.stride_bytes[i];
      (reach < 0 ? first : end) += reach;
    }
    const bool any = transfer.count.product() > 0;
    if (transfer.process != 0 || (any && (first < 0 || end > std::int64_t(size_bytes_))))
      throw Error(EINVAL, {.attempted = "reach one-sided memory", .offset = transfer.offset});
    return any;
  }
  [[nodiscard]] std::atomic_ref<std::int64_t> number(int process, std::int64_t offset) const {
    if (process != 0 || offset < 0 || offset % 8 != 0 || offset + 8 > std::int64_t(size_bytes_))
      throw Error(EINVAL, {.attempted = "change a number in one-sided memory", .offset = offset});
    return std::atomic_ref(*reinterpret_cast<std::int64_t*>(local_ + offset));
  }
  template <class Element>
  static void add(const StridedTransfer& transfer, const Element& alpha, int axis, std::byte* to,
                  const std::byte* from) {
    if (axis == transfer.count.rank()) {
      Element sum, addend;
      std::memcpy(&sum, to, sizeof sum);
      std::memcpy(&addend, from, sizeof addend);
      sum += alpha * addend;
      std::memcpy(to, &sum, sizeof sum);
      return;
    }
    for (std::int64_t i = 0; i < transfer.count[axis]; ++i)
      add<Element>(transfer, alpha, axis + 1, to + i * transfer.stride_bytes[axis],
                   from + i * transfer.memory_stride_bytes[axis]);
  }

  std::mutex mutex_;
};

class SkeletonTransport final : public Transport {
 public:
  [[nodiscard]] std::string description() const override { return "skeleton"; }
  [[nodiscard]] std::string host() const override { return "here"; }
  void barrier() override {}
  void broadcast(std::span<std::byte> /*data*/, int /*root*/) override {}
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    std::copy(mine.begin(), mine.end(), all.begin());
  }
  void all_reduce(std::span<double> /*values*/, Reduction /*reduction*/) override {}
  void all_reduce(std::span<std::int64_t> /*values*/, Reduction /*reduction*/) override {}
  [[nodiscard]] std::unique_ptr<Transport> split(int color, int /*key*/) override {
    return color < 0 ? nullptr : std::make_unique<SkeletonTransport>();
  }
  [[nodiscard]] std::unique_ptr<Messages> messages() override { return std::make_unique<SkeletonMessages>(); }
  [[nodiscard]] std::unique_ptr<Segment> allocate(std::size_t size_bytes, bool /*shared*/) override {
    return std::make_unique<SkeletonSegment>(size_bytes);
  }
};

}  // namespace outcore::transport

#endif
