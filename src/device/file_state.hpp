// The state of an open file: file.cpp opens it and handles it as a whole, file_transfers.cpp moves its bytes.
#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/undelivered.hpp"
#include "device/cache_policy.hpp"
#include "device/descriptor.hpp"
#include "device/file.hpp"
#include "device/opening.hpp"
#include "device/refused_space.hpp"
#include "device/space_ahead.hpp"
#include "device/space_in_use.hpp"
#include "device/transfer.hpp"
#include "outcore/error.hpp"
#include "outcore/trace.hpp"

namespace outcore::device {

using FileStatus = struct stat;

struct File::State final : Transfer::Owner, std::enable_shared_from_this<File::State> {
  using Kind = Operation::Kind;
  static constexpr std::uint32_t page_bytes = 4096;

  std::string path;
  OpenOptions options;
  Descriptor buffered, direct;
  DirectAlign align;
  std::uint32_t trace_file = 0;
  std::optional<CachePolicy> policy;    ///< once the descriptors are open
  std::optional<SpaceAhead> ahead;      ///< the same
  std::optional<RefusedSpace> refused;  ///< the same
  std::optional<SpaceInUse> in_use;     ///< the same

  bool plain = true;  ///< no engine of the caller and no emulated disk has to see the reads
  std::atomic<std::int64_t> read_end{-1}, write_end{-1};  ///< where the last request of the kind ended
  std::atomic<std::uint32_t> under_way{0};                ///< nonblocking requests not complete yet
  Undelivered undelivered;                                ///< errors of nonblocking writes

  State(std::string name, const OpenOptions& wanted);
  void open_direct(const FileStatus& about);
  [[nodiscard]] FileStatus status_of(int fd) const;

  [[nodiscard]] Engine& engine() const { return options.engine ? *options.engine : default_engine(); }
  /// In the calling thread. The engine of the process is not started for that.
  [[nodiscard]] std::int64_t run(const Operation& operation) const noexcept {
    return options.engine ? options.engine->run(operation) : run_by_default(operation);
  }
  [[nodiscard]] Target target() const {
    return {buffered.get(), direct.get(), align.memory, std::max(align.offset, page_bytes)};
  }
  void check(const char* attempted, std::int64_t offset = 0, std::int64_t size = 0) const;
  void check_request(Kind kind, std::span<const iovec> list, std::int64_t offset) const;

  std::int64_t blocking(Kind kind, std::span<const iovec> list, std::int64_t offset,
                        const trace::Asker& asker = {});
  Request nonblocking(Kind kind, std::span<const iovec> list, std::int64_t offset,
                      const trace::Asker& asker = {}, File::Then then = {});
  void wait_for_all() const;
  void flush();
  void settle();
  void close();

  /// Whether this request begins where the last one of its kind ended, for the trace. Notes requests in the
  /// order in which they are made.
  [[nodiscard]] bool follows(Kind kind, std::int64_t offset, std::int64_t size) noexcept;
  void starts(Transfer& transfer) noexcept;
  [[nodiscard]] bool moved_at_once(Kind kind, const iovec& entry, std::int64_t offset,
                                   bool cached_only = false) const noexcept;
  [[nodiscard]] bool copied(const iovec& entry, std::int64_t offset, const trace::Asker& asker);
  void count_moved(trace::Event event, const trace::Asker& asker) const noexcept;
  void report(trace::Event event, const trace::Asker& asker) const noexcept;
  void completed(Transfer& transfer) noexcept override;
  void ended() noexcept override;
  [[nodiscard]] Error error_of(const Transfer& transfer) const override;
  void waited(const Transfer& transfer, std::uint64_t nanoseconds) noexcept override;
  [[nodiscard]] Error not_allocated(int error, const char* attempted, std::int64_t offset,
                                    std::int64_t size_bytes) const;

  /// Runs `body`, which returns 0 or an error number, counting and timing it as `op`.
  template <class Body>
  std::int64_t traced(trace::Op op, std::int64_t bytes, Body body);
};

}  // namespace outcore::device
