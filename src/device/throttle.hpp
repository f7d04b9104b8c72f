// An emulated storage, slower than the real one: requests end when they would end there.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "outcore/extend/engine.hpp"

namespace outcore::device {

/// Storage of one or several disks over which every file is striped: byte `o` of a file lies on disk
/// (o / stripe_bytes) mod disks. A disk moves one request after another at its bandwidth, in the order of
/// their arrival. A request ends a latency after its last byte was moved; a disk does not wait for that, so
/// latencies of requests under way at the same time overlap, as those of a disk behind a network or a
/// controller do. There is no page cache: what was read before is read again.
struct Throttle {
  double bandwidth_bytes_per_s = 0;  ///< of each disk
  std::int64_t latency_ns = 0;       ///< of each request
  unsigned disks = 1;                ///< at most 64
  std::int64_t stripe_bytes = 64 << 10;
  /// A file that says until when the disks are busy. Processes of one node that name the same one share the
  /// disks; empty: the disks are this process's own. It is made if it is missing, and may be removed once
  /// nobody opens it any more.
  std::string clock = {};

  /// From "bandwidth=80MB,latency=1ms" and, if wanted, ",disks=4,stripe=64KiB,clock=FILE" (which comes last:
  /// a name may hold commas). Throws Error(EINVAL).
  [[nodiscard]] static Throttle parse(const std::string& text);
  /// For people: "4 disks of 80 MB/s, striped by 65536 bytes, latency 1 ms, shared".
  [[nodiscard]] std::string describe() const;
};

/// Computes when requests end. All times are nanoseconds of trace::now_ns(); nothing here reads a clock, as
/// the caller passes the arrival time. Thread-safe, and safe between the processes that share it.
class DiskClock {
 public:
  explicit DiskClock(const Throttle& throttle);  ///< throws Error if the clock file cannot be used
  ~DiskClock();
  DiskClock(const DiskClock&) = delete;
  DiskClock& operator=(const DiskClock&) = delete;

  /// Books a request that arrives at `arrival_ns`; returns its end. Without bytes to move, only the latency
  /// counts.
  std::uint64_t book(std::uint64_t arrival_ns, std::int64_t offset, std::int64_t size_bytes) noexcept;

 private:
  struct Shared;  // the head of the clock file
  void share();

  Throttle throttle_;
  std::vector<std::atomic<std::uint64_t>> own_;
  Shared* shared_ = nullptr;
  std::atomic<std::uint64_t>* busy_until_;  // of each disk
};

/// Runs everything on `inner` and holds back the results of reads, writes and syncs (which take a latency)
/// until the emulated storage would have them. The time of `inner` is included, so results come late only if
/// `inner` is slower. The time of an asynchronous request begins when it is submitted.
[[nodiscard]] std::unique_ptr<Engine> make_throttled_engine(std::unique_ptr<Engine> inner,
                                                            const Throttle& throttle);

}  // namespace outcore::device
