// The component files of a striped file that this process has opened, and how it serves them to others.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "outcore/device/buffer.hpp"
#include "outcore/device/file.hpp"
#include "outcore/gpc.hpp"
#include "store/extents.hpp"

namespace outcore::store {

/// A call carries at most so many bytes, and pieces.
inline constexpr std::int64_t most_asked_bytes = 1 << 20;
inline constexpr std::size_t most_asked_pieces = 120;

/// A piece of a component, as it stands in the header of a call, one after another behind an Ask. The bytes
/// of a write are the payload, those of a read the reply, in the order of the pieces.
struct Ask {
  std::int32_t write = 0, count = 0;
};
struct AskedPiece {
  std::int64_t component = 0, offset = 0, size_bytes = 0;
};
static_assert(sizeof(Ask) + most_asked_pieces * sizeof(AskedPiece) <= most_call_header_bytes);

/// Memory for replies: a fixed number of pieces, who finds none free waits. So an owner needs the same memory
/// whatever the number of clients.
class ReplyMemory : public std::enable_shared_from_this<ReplyMemory> {
 public:
  static constexpr std::size_t count = 8;
  static constexpr std::int64_t size_bytes = static_cast<std::int64_t>(count) * most_asked_bytes;

  ReplyMemory();
  [[nodiscard]] std::shared_ptr<std::byte> take();  ///< most_asked_bytes; let go it is used again

 private:
  device::Buffer memory_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::byte*> free_;
};

struct StripedComponents {
  std::vector<std::optional<device::File>> files;  ///< by component; none: out of reach
  std::vector<std::string> names;        ///< of files that still have one, and are this process's to remove
  std::shared_ptr<ReplyMemory> replies;  ///< null: nobody asks

  ~StripedComponents();
  void remove_names() noexcept;
  [[nodiscard]] device::File& at(int component);
  void read(int component, std::span<Extent> extents);  ///< blocking; gaps are zeros
  void write(int component, std::span<Extent> extents);
  void serve(Call call);  ///< what the procedure does
};

}  // namespace outcore::store
