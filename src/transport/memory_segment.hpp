// A segment whose parts all lie in memory that this process can reach.
#pragma once

#include <memory>

#include "outcore/extend/transport.hpp"
#include "transport/mapping.hpp"
#include "transport/striped_locks.hpp"

namespace outcore::transport {

/// The shared memory of such a segment: a header with the locks, then the parts of the processes (or
/// threads), back to back.
class SharedParts {
 public:
  SharedParts(int processes, std::size_t part_bytes);          ///< in this process
  SharedParts(int fd, int processes, std::size_t part_bytes);  ///< in a file of at least file_bytes()
  [[nodiscard]] static std::size_t file_bytes(int processes, std::size_t part_bytes);

  [[nodiscard]] StripedLocks& locks() const noexcept;
  [[nodiscard]] std::byte* part(int process) const noexcept;
  [[nodiscard]] std::size_t part_bytes() const noexcept { return part_bytes_; }
  [[nodiscard]] int processes() const noexcept { return processes_; }
  [[nodiscard]] const Mapping& mapping() const noexcept { return mapping_; }

 private:
  Mapping mapping_;
  int processes_;
  std::size_t part_bytes_;
};

/// Whether users may see that all parts can be reached. `hidden` is for tests of transfers between nodes:
/// only the own part is direct, and a get is done only when it is waited for.
enum class PartReach { direct, hidden };

[[nodiscard]] std::unique_ptr<Segment> memory_segment(std::shared_ptr<const SharedParts> parts, int rank,
                                                      PartReach reach);

}  // namespace outcore::transport
