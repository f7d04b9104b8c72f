// Engines: what carries out system-level operations for files.
//
// A Transfer (src/device/transfer.hpp) is the state machine of one request: it hands out one Operation after
// another and is told each result. It knows about short transfers, EINTR, alignment and the end of the file;
// an engine knows only how to run an operation. So all engines have the same semantics.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <string>

namespace outcore::device {

class Transfer;

struct Operation {
  enum class Kind : std::uint8_t { read, write };
  Kind kind = Kind::read;
  bool cached_only = false;  ///< serve from the page cache or fail with EAGAIN (RWF_NOWAIT)
  int fd = -1;
  std::int64_t offset = 0;
  const iovec* list = nullptr;
  unsigned list_count = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;
  [[nodiscard]] virtual const char* name() const noexcept = 0;
  /// Runs the transfer to its end, without blocking the caller on I/O. Thread-safe.
  virtual void submit(std::shared_ptr<Transfer> transfer) = 0;
  /// Runs one operation in the calling thread and returns its result: bytes, or -errno.
  virtual std::int64_t run(const Operation& operation) noexcept = 0;
};

/// Throws Error (ENOSYS, EPERM, ...) when the kernel or the build has no io_uring.
[[nodiscard]] std::unique_ptr<Engine> make_uring_engine(unsigned depth = 256);
/// threads = 0: chosen from the cores given to the process.
[[nodiscard]] std::unique_ptr<Engine> make_thread_engine(unsigned threads = 0);

/// The engine of the process: io_uring if it works, else the thread pool. OUTCORE_ENGINE=uring|threads forces
/// one. Chosen at first use, and again in a forked child.
[[nodiscard]] Engine& default_engine();
/// Why the default engine is what it is, e.g. "io_uring_setup: Operation not permitted".
[[nodiscard]] std::string default_engine_reason();

}  // namespace outcore::device
