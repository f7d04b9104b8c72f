// An engine that emulates programs without asynchronous I/O: every request is complete when its call returns.
// Studies measure with it what such programs lose.
#pragma once

#include <cstdint>
#include <memory>

#include "outcore/extend/engine.hpp"

namespace outcore::device {

/// How requests reach the storage.
enum class Requests : std::uint8_t {
  asynchronous,  ///< as the engine does
  blocking,      ///< the calling thread carries each out, as one read or write
  /// The same, but in the pieces in which the run-time library of GNU Fortran moves an unformatted sequential
  /// record through its buffer of 8 KiB (the default up to version 9; GFORTRAN_UNFORMATTED_BUFFER_SIZE=8192
  /// since): a read in two pieces, the buffer and the rest; a write in three, two record markers and the
  /// rest. No markers are stored; bytes of the record take their place: 4 at its begin and 8 at its end, or
  /// 4096 where direct I/O needs pages. Records of up to half the buffer are not divided.
  fortran
};

/// Throws Error(EINVAL) for Requests::asynchronous.
[[nodiscard]] std::unique_ptr<Engine> make_blocking_engine(std::unique_ptr<Engine> inner, Requests requests);

}  // namespace outcore::device
