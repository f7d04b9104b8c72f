// The directory of a persistent array: its files, and how a new state takes the place of the old one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "array/manifest.hpp"
#include "device/descriptor.hpp"
#include "device/directory.hpp"
#include "device/held_lock.hpp"
#include "dio/chunks/grid.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/extend/transport.hpp"
#include "outcore/world.hpp"
#include "store/slot_table.hpp"

namespace outcore::dio {
class Visibility;
}

namespace outcore::array {

/// Names of the files of a component. `replaced`: the generation of the array in whose place this one was
/// made; 0: there was none.
[[nodiscard]] std::string component_name(int component, std::uint64_t replaced);
/// What the names in a manifest say of that.
[[nodiscard]] std::uint64_t replaced_by(const Manifest& manifest);
/// The table that belongs to this state of a component, and no other. Throws Error(EIO) if it does not.
[[nodiscard]] store::SlotTable read_table(const Manifest& manifest, int component,
                                          const device::Directory& directory);
/// Throws Error(EIO) if a manifest names other files than an array has.
void check_names(const Manifest& manifest, const std::string& path);

/// A directory that all processes share, or one of the same name on each node. It holds
///
///     component.<c>            data of component c, for its owner; component.<c>.<g> of an array that was
///                              made in the place of one that had been committed as generation g
///     table.<c>.<generation>   what of it is valid, with checksums
///     manifest                 the state that was committed last: it names generation and tables
///     manifest.next            a state that is being committed
///
/// Tables of states before that stay while somebody reads them (StateLease).
///
/// A commit makes tables durable, then `manifest.next` on each node that has a manifest, without its name.
/// When that is so everywhere it takes the place of the old manifest, at once. So a node that has the new one
/// proves that all of the new state is durable; the other nodes learn of it from that one, and nothing of the
/// old state is removed before all have it. An array that is made in the place of another one has files of
/// other names, and its first generation follows the last one of that: so the other one is there until the
/// first commit, and its files go after it. Deleting an array goes the other way: manifests go first, on all
/// nodes and for good, so that there is all of the array or none.
///
/// Another party may have made the directory, or change it: each process holds it open, looks up the names
/// above in it, and follows no symbolic link.
class ArrayDirectory {
 public:
  ArrayDirectory() = default;

  /// Collective. `path` as given, with "{node}". Throws Error(EEXIST) if there is something, and it is not an
  /// array that may be replaced; Error(EBUSY) if somebody is writing it. Then no process leaves a directory
  /// that it made. `contained`: see DiskArrayOptions.
  static ArrayDirectory create(World& world, const std::string& path, Placement placement, bool overwrite,
                               int contained);
  /// Collective. Finds the placement of what is there; `manifest` is what was committed last, as bytes.
  /// Throws Error(EBUSY) if somebody is writing it, unless `read_only`. A process that writes has made
  /// durable what was found: a job that was killed may have left it to the page cache.
  static ArrayDirectory open(World& world, const std::string& path, bool read_only, int contained,
                             std::vector<std::byte>& manifest);
  /// Nothing is read or written here any more.
  void unlock() noexcept {
    lock_.reset();
    opened_ = {};
  }

  [[nodiscard]] Placement placement() const noexcept { return placement_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] std::string component(int number) const { return component_name(number, replaced_); }
  /// Generation of the array that this one replaces, or has replaced; 0: none. The same everywhere.
  [[nodiscard]] std::uint64_t replaced() const noexcept { return replaced_; }
  [[nodiscard]] const device::Directory& opened() const noexcept { return opened_; }  ///< none if not here

  /// Collective. The components this process is to own; each has one owner, on a node that has its file.
  [[nodiscard]] std::vector<int> share(World& world, const dio::ChunkGrid& grid) const;

  /// Functions that put the names of tables that this process has written, if it has, all names on its
  /// node if it leads there, and before the first commit that of the directory, on stable storage; for
  /// store::sync_together. To be run before `commit`.
  [[nodiscard]] std::vector<std::function<void()>> syncs(bool has_tables) const;
  /// Collective, in any thread that has a group: the tables are on stable storage, with their names.
  void commit(transport::Transport& group, std::span<const std::byte> manifest);
  /// A commit has failed so late that its state may be the one that is found. Nothing must be written any
  /// more: it could belong to that state. The same everywhere.
  [[nodiscard]] bool uncertain() const noexcept { return uncertain_; }

  /// Collective: removes everything.
  void remove(transport::Transport& group) const;
  /// Removes a component that was never committed, of an array that replaces another one. Throws nothing.
  void give_up(int number) const noexcept;

 private:
  void make(World& world, Placement placement, bool overwrite);
  void make_directory(bool overwrite);
  void delete_manifest() const;
  void delete_others() const;
  static bool leads(const World& world, Placement placement, const dio::Visibility& seen);
  void lock(std::string_view what);
  void look_for();  ///< opens the directory, if it is here

  std::string path_;   ///< as this process sees it
  int contained_ = 0;  ///< the last so many names of it are no symbolic links
  device::Directory opened_;
  Placement placement_ = Placement::local;  // as that of a scratch array is
  bool leads_ = false;                      ///< this process writes what is common to the directory
  bool fresh_ = false;                      ///< made here: the first commit makes its name durable, too
  bool is_new_ = false;                     ///< this process has made the directory
  bool uncertain_ = false;
  std::uint64_t replaced_ = 0;
  bool replaces_ = false;  ///< the other array is still there
  device::HeldLock lock_;  ///< of the directory: who leads keeps other writers out, until it ends
};

}  // namespace outcore::array
