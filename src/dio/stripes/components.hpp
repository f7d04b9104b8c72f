// The component files of a striped file that this process has opened, and their service to others.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/file.hpp"
#include "dio/staging.hpp"
#include "dio/stripes/joined_ranges.hpp"
#include "dio/thread_pool.hpp"
#include "outcore/call.hpp"

namespace outcore::dio {

/// The most bytes, and ranges, of a call.
inline constexpr std::int64_t max_asked_bytes = 1 << 20;
inline constexpr std::size_t max_asked_ranges = 120;

/// Bytes of a component, as they stand in the header of a call, one after another behind an Ask. The bytes
/// of a write are the payload, those of a read the reply, in the order of the ranges.
struct Ask {
  std::int32_t write = 0, count = 0;
};
struct AskedRange {
  std::int64_t component = 0;
  ByteRange range;
};
static_assert(sizeof(Ask) + max_asked_ranges * sizeof(AskedRange) <= max_call_header_bytes);

static_assert(max_asked_bytes <= ReplySlots::large_bytes);

struct StripedComponents {
  std::vector<std::optional<device::File>> files;  ///< by component; none: out of reach
  std::vector<std::string> names;                  ///< names that still exist, which this process must remove
  std::shared_ptr<ReplySlots> replies;             ///< null: the file has no clients
  int rank = 0;                                    ///< of this process, which errors name

  StripedComponents() = default;
  ~StripedComponents();
  StripedComponents(const StripedComponents&) = delete;
  StripedComponents& operator=(const StripedComponents&) = delete;

  void remove_names() noexcept;
  [[nodiscard]] device::File& at(int component);
  void read(int component, std::span<TransferRange> ranges);  ///< blocking; gaps are zeros
  void write(int component, std::span<TransferRange> ranges);

  /// Memory and threads for `serve`.
  void prepare_to_serve(Budget& budget);
  /// The procedure, which runs in the service's thread. It reads bytes that the page cache holds at once. A
  /// thread copies writes into the page cache, which may have to wait for the disk. Everything else goes to
  /// the engine, whose threads answer.
  void serve(Call call);

 private:
  struct Asked;
  bool suits_room(const Asked& asked);
  bool serve_at_once(Asked& asked);
  [[nodiscard]] bool copies(const Asked& asked);
  void copy(Asked& asked);
  void begin(const std::shared_ptr<Asked>& asked);

  ThreadPool reads_{"outcore-feeder"};  ///< runs reads that wait for memory
  ThreadPool copies_{"outcore-copier"};
};

}  // namespace outcore::dio
