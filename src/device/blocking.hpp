// An engine for programs that know no asynchronous I/O: every request is complete when its call returns. What
// such programs lose is measured with it.
#pragma once

#include <cstdint>
#include <memory>

#include "outcore/extend/engine.hpp"

namespace outcore::device {

/// How requests reach the storage.
enum class Requests : std::uint8_t {
  asynchronous,  ///< as the engine does
  blocking,      ///< each is carried out in the thread that makes it, as one read or write
  /// The same, but in the pieces in which the run-time library of GNU Fortran moves an unformatted sequential
  /// record through its buffer of 8 KiB (the default up to version 9; GFORTRAN_UNFORMATTED_BUFFER_SIZE=8192
  /// since): a read as the buffer and the rest, a write as two writes of record markers and one of the rest.
  /// Markers are not stored; their pieces are bytes of the record: 4 at its begin and 8 at its end, or 4096
  /// where direct I/O wants pages. Records of up to half the buffer are not divided.
  fortran
};

/// Throws Error(EINVAL) for Requests::asynchronous.
[[nodiscard]] std::unique_ptr<Engine> make_blocking_engine(std::unique_ptr<Engine> inner, Requests requests);

}  // namespace outcore::device
