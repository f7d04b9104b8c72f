// States of an array that somebody reads: a lock of its tables says so, and ends with the process.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "device/directory.hpp"
#include "device/held_lock.hpp"

namespace outcore::store {

/// Who reads a state of a component holds a shared lock (flock) of its table while it does. Then a writer
/// that has committed other states leaves the table alone, and everything it refers to. The lock vanishes
/// with the process, however that ends. It asks for the right to read only. File systems without locks
/// cannot help: there a reader beside a writer may meet Error(EIO).
class StateLease {
 public:
  StateLease() = default;  ///< of nothing
  /// Throws Error: ENOENT if there is no such table, or it is being removed.
  StateLease(const device::Directory& directory, const std::string& table);
  /// Throws Error(ENOENT) if the table is not the one that has this name any more: it has been deleted with
  /// its array.
  void check(const device::Directory& directory) const;

 private:
  std::string table_;
  device::HeldLock lock_;
};

/// Whether somebody reads the state of this table. If not, the table is removed: nobody can begin to.
/// Throws Error if that fails.
[[nodiscard]] bool is_read(const device::Directory& directory, const std::string& table);

/// The name of the table of a component in a state.
[[nodiscard]] std::string table_name(int component, std::uint64_t generation);
/// All tables of components in a directory: component and generation of each.
[[nodiscard]] std::vector<std::pair<int, std::uint64_t>> tables_in(const device::Directory& directory);

}  // namespace outcore::store
