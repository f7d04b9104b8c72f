// The directory of a persistent array: its files, and how a commit replaces the old state by a new one.
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

/// Names of the files of a component. `replaced`: the generation of the array that this one has replaced; 0:
/// none.
[[nodiscard]] std::string component_name(int component, std::uint64_t replaced);
/// The generation of the replaced array, as the names in a manifest tell.
[[nodiscard]] std::uint64_t replaced_by(const Manifest& manifest);
/// Reads the table of a component. Throws Error(EIO) if it does not belong to this state.
[[nodiscard]] store::SlotTable read_table(const Manifest& manifest, int component,
                                          const device::Directory& directory);
/// Throws Error(EIO) if a manifest names other files than an array has.
void check_names(const Manifest& manifest, const std::string& path);

/// A directory that all processes share, or one of the same name on each node. It holds
///
///     component.<c> data of component c, for its owner; component.<c>.<g> if the array has replaced one that
///     was committed as generation g
///     table.<c>.<generation> which chunks are valid, with checksums
///     manifest                 the state that was committed last: it names generation and tables
///     manifest.next            a state that is being committed
///
/// Tables of earlier states stay while somebody reads these states (StateLease).
///
/// A commit makes the tables durable, then the bytes of `manifest.next` on each node that has a manifest.
/// When all nodes have done so, `manifest.next` atomically replaces the old manifest. So if one node has the
/// new manifest, all of the new state is durable; the other nodes get the manifest from that node, and
/// nothing of the old state is removed before all have it. An array that replaces another one has files of
/// other names, and its first generation follows the last one of the old array. So the old array exists until
/// the first commit, and its files are removed after that. Deletion goes the other way: first the manifests
/// are removed, durably and on all nodes, so that all of the array exists or nothing.
///
/// Another party may have made the directory, or may change it: each process holds it open, looks up the
/// names above in it, and follows no symbolic link.
class ArrayDirectory {
 public:
  ArrayDirectory() = default;

  /// Collective. `path` as given, with "{node}". Throws Error(EEXIST) if the path exists and is no array that
  /// may be replaced; Error(EBUSY) if another job writes it. Then no process leaves a directory that it made.
  /// `contained`: see DiskArrayOptions.
  static ArrayDirectory create(World& world, const std::string& path, Placement placement, bool overwrite,
                               int contained);
  /// Collective. Finds the placement of an existing array; `manifest` receives the bytes of its last commit.
  /// Throws Error(EBUSY) if another job writes it, unless `read_only`. If opened to write, makes the state
  /// that was found durable: a job that was killed may have left it in the page cache only.
  static ArrayDirectory open(World& world, const std::string& path, bool read_only, int contained,
                             std::vector<std::byte>& manifest);
  /// Ends the use of the directory: nothing is read or written here any more.
  void unlock() noexcept {
    lock_.reset();
    opened_ = {};
  }

  [[nodiscard]] Placement placement() const noexcept { return placement_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] std::string component(int number) const { return component_name(number, replaced_); }
  /// Generation of the array that this one replaces, or has replaced; 0: none. The same at all processes.
  [[nodiscard]] std::uint64_t replaced() const noexcept { return replaced_; }
  [[nodiscard]] const device::Directory& opened() const noexcept { return opened_; }  ///< none if not here

  /// Collective. The components this process is to own; each has one owner, on a node that has its file.
  [[nodiscard]] std::vector<int> share(World& world, const dio::ChunkGrid& grid) const;

  /// Functions for store::sync_together, to be run before `commit`. They put names on stable storage: those
  /// of tables that this process has written; all names on its node, if it leads the node; and, before the
  /// first commit, the name of the directory.
  [[nodiscard]] std::vector<std::function<void()>> syncs(bool has_tables) const;
  /// Collective, in any thread that has a group. The tables and their names must be on stable storage.
  void commit(transport::Transport& group, std::span<const std::byte> manifest);
  /// Whether a commit has failed so late that the next opening may find its state. Nothing must then be
  /// written any more, because it could damage that state. The same at all processes.
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

  std::string path_;   ///< the path as this process sees it
  int contained_ = 0;  ///< how many of its last names must be no symbolic links
  device::Directory opened_;
  Placement placement_ = Placement::local;  // local, as that of a scratch array
  bool leads_ = false;                      ///< this process writes the files that the directory has once
  bool fresh_ = false;                      ///< made here: the first commit makes its name durable, too
  bool is_new_ = false;                     ///< this process has made the directory
  bool uncertain_ = false;
  std::uint64_t replaced_ = 0;
  bool replaces_ = false;  ///< the other array is still there
  device::HeldLock lock_;  ///< of the directory: the leading process keeps other writers out until it ends
};

}  // namespace outcore::array
