// Transport: how processes reach one another. Collectives, one-sided memory, and nothing about arrays or
// files.
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
  std::int64_t offset = 0;  ///< of its first element in the segment, in bytes
  Extents stride_bytes;     ///< in the segment
  std::byte* memory = nullptr;
  Extents memory_stride_bytes;
  Extents count;
  ElementType type = ElementType::float64;
};

/// One-sided memory: a part of equal size in each process, zero at first. Gets, puts and accumulates need no
/// help of the process they concern and complete while it computes. A transfer that is not inside the part of
/// its process is Error(EINVAL). Thread-safe. Freed by its destructor, which is collective.
class OUTCORE_API Segment {
 public:
  virtual ~Segment() = default;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  [[nodiscard]] std::size_t size_bytes() const noexcept { return size_bytes_; }  ///< of each part
  [[nodiscard]] std::byte* local() const noexcept { return local_; }
  /// The part of a process if it can be loaded from and stored to, else null; the own part always can.
  [[nodiscard]] virtual std::byte* direct(int process) const noexcept = 0;

  /// One-sided operations. A get: the data is here when the request is done; a put or accumulate: the memory
  /// may be reused. The end of the last copy of a request waits.
  [[nodiscard]] virtual Request get(const StridedTransfer& transfer) = 0;
  [[nodiscard]] virtual Request put(const StridedTransfer& transfer) = 0;
  /// Adds alpha times the memory. Each element is updated atomically with regard to other accumulates.
  /// `alpha` points to one element of the type. Types int32 and larger, float and complex.
  [[nodiscard]] virtual Request accumulate(const StridedTransfer& transfer, const void* alpha) = 0;
  /// Atomic, on an aligned int64 in the segment; return the value before.
  virtual std::int64_t fetch_add(int process, std::int64_t offset, std::int64_t value) = 0;
  virtual std::int64_t compare_swap(int process, std::int64_t offset, std::int64_t expected,
                                    std::int64_t value) = 0;
  /// All puts and accumulates of this process have arrived, and are visible to gets from anywhere; what
  /// others put into the part of this process before they said so is visible to its loads.
  virtual void flush() = 0;
  /// Zeros a range of the own part; its memory goes back to the system where that is possible. Nobody may
  /// use the range meanwhile.
  virtual void clear(std::int64_t offset, std::int64_t size_bytes);
  /// A range of the own part is going to be used: its memory is there now, in large pages where the system
  /// has them. Only makes it faster.
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

  /// For those who wait for others by looking at memory, each second or so; collectives do it themselves.
  /// Throws Error(ECONNRESET) if it is found that a process has died. From then on collectives do so at once.
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

/// Runs `body` in `count` threads of this process, each with the transport of one rank; returns when all
/// have. If one throws, waiting collectives of the others throw Error(ECANCELED), and the first error is
/// rethrown.
OUTCORE_API void run_threads(int count, const std::function<void(std::unique_ptr<Transport>)>& body);

/// The processes of an MPI communicator, given by its Fortran handle (MPI_Comm_c2f, mpi4py's comm.py2f()).
/// MPI must be initialised with MPI_THREAD_MULTIPLE by the program. The library that is loaded is used; Error
/// (ENOTSUP) if none is, if it is not one this build has a shim for, or if two are. The communicator is
/// duplicated. After MPI_Finalize everything but destroying is Error(ESHUTDOWN).
[[nodiscard]] OUTCORE_API std::unique_ptr<Transport> mpi(int fortran_communicator);

}  // namespace outcore::transport
