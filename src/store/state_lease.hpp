// Leases of states of an array that a process reads: locks of the tables, which end with the process.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "device/directory.hpp"
#include "device/held_lock.hpp"

namespace outcore::store {

/// While a process reads a state of a component it holds a shared lock (flock) of the table of that state. A
/// writer that commits other states then keeps the table and everything it refers to. The lock vanishes with
/// the process, however that ends. It needs the right to read only. On file systems without locks, a reader
/// beside a writer may get Error(EIO).
class StateLease {
 public:
  StateLease() = default;  ///< of nothing
  /// Takes a lease. Throws Error: ENOENT if there is no such table, or if it is being removed.
  StateLease(const device::Directory& directory, const std::string& table);
  /// Throws Error(ENOENT) if the table has lost its name: it was deleted with its array.
  void check(const device::Directory& directory) const;

 private:
  std::string table_;
  device::HeldLock lock_;
};

/// Whether somebody reads the state of this table. If not, removes the table, so that nobody can begin to.
/// Throws Error if that fails.
[[nodiscard]] bool is_read(const device::Directory& directory, const std::string& table);

/// The name of the table of a component in a state.
[[nodiscard]] std::string table_name(int component, std::uint64_t generation);
/// The component and generation of each table in a directory.
[[nodiscard]] std::vector<std::pair<int, std::uint64_t>> tables_in(const device::Directory& directory);

}  // namespace outcore::store
