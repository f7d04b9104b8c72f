// An engine that injects faults, reproducibly. For tests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "outcore/extend/engine.hpp"

namespace outcore::device {

enum class Fault : std::uint8_t {
  none,
  short_transfer,  ///< fewer bytes than asked for are moved
  interrupted,     ///< EINTR, nothing is moved
  io_error,        ///< EIO, nothing is moved
  full,            ///< ENOSPC, nothing is written
  slow,            ///< the operation is held up for `slow_ns`
  torn_write,      ///< only a part is written, but all of it is reported
  bit_flip         ///< one bit of what was read is wrong
};

/// Probabilities of faults for each operation, 0 to 1. The same seed and the same operations give the same
/// faults.
struct FaultPlan {
  std::uint64_t seed = 1;
  double short_transfer = 0, interrupted = 0, io_error = 0, slow = 0, torn_write = 0, bit_flip = 0;
  std::int64_t slow_ns = 1'000'000;
  std::int64_t full_after_bytes = -1;  ///< the device takes so many bytes; -1: any number
  /// If set, decides for each operation instead of the probabilities; gets its number (from 0) and the
  /// operation.
  std::function<Fault(std::uint64_t number, const Operation& operation)> script{};
  /// Keep the bytes that writes overwrite, so that `crash` can undo writes that were not flushed.
  bool lose_unsynced = false;
};

/// Runs everything on another engine, with the faults of the plan.
class FaultEngine : public Engine {
 public:
  /// Writes that no flush has put on stable storage vanish, as when the machine stops; returns the bytes
  /// undone. Nothing may be under way. Only with FaultPlan::lose_unsynced.
  virtual std::int64_t crash() = 0;
  [[nodiscard]] virtual std::uint64_t injected() const noexcept = 0;  ///< faults so far
};

[[nodiscard]] std::unique_ptr<FaultEngine> make_fault_engine(std::unique_ptr<Engine> inner, FaultPlan plan);

}  // namespace outcore::device
