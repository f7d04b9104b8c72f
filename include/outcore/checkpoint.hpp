// Checkpoints: named arrays and a text about them, saved atomically, all or nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "outcore/api.h"
#include "outcore/disk_array.hpp"
#include "outcore/element_type.hpp"
#include "outcore/extend/codec.hpp"
#include "outcore/global_array.hpp"
#include "outcore/memory.hpp"
#include "outcore/placement.hpp"
#include "outcore/world.hpp"

namespace outcore {

/// The kind of array that was saved.
enum class Kept : std::uint8_t {
  global,  ///< a global array
  disk,    ///< a disk array
  values   ///< memory that is the same at all processes; in Python a NumPy array
};

/// An array of a checkpoint.
struct KeptArray {
  std::string name;
  Kept kind = Kept::values;
  ElementType type{};
  std::vector<std::int64_t> shape;       ///< shape of the saved array; empty: one element
  std::vector<std::int64_t> file_shape;  ///< shape of its file: the same, or {1} without axes or elements
  std::string identity;                  ///< identity of its file, see DiskArray::identity
  std::int64_t commits = 0;              ///< last commit of its file, see DiskArray::generation
};

struct CheckpointOptions {
  std::string path = {};  ///< a directory, whose parent must exist
  store::CodecOptions codec = {};
  Placement placement = Placement::automatic;
};

/// Saves arrays under a path and replaces the checkpoint that is there. Any number of processes and nodes can
/// open it, also in Python (outcore.checkpoint); C++ opens checkpoints of Python as well.
///
///     manifest, component.0, ...    a persistent array of one number, whose metadata name the generation
///     arrays.<generation>/<name>    the persistent arrays of that generation
///
/// A new generation is written beside the old one. Then a commit of the small array makes it the valid one,
/// and only then the old one is removed. So a process that is killed at any moment leaves the previous
/// checkpoint or the new one.
///
/// Nothing but `commit` is collective. Arrays and memory that were added must stay as they are until it ends.
class OUTCORE_API CheckpointSaving {
 public:
  CheckpointSaving(World& world, CheckpointOptions options);
  ~CheckpointSaving();
  CheckpointSaving(CheckpointSaving&&) noexcept;
  CheckpointSaving& operator=(CheckpointSaving&&) noexcept;

  /// A name has at most 100 letters, digits and _ . + -, and is used once. If add throws Error(EINVAL),
  /// `commit` throws it, too, at all processes.
  void add(const std::string& name, const GlobalArray& array);
  void add(const std::string& name, DiskArray& array);
  /// Memory that is the same at all processes, in C order without gaps: an mdspan, or a range of the given
  /// shape (none: one element) or of one axis.
  void add(const std::string& name, const ConstElements& values) { add(name, values, values.shape()); }
  void add(const std::string& name, const ConstElements& values, const Extents& shape);
  /// The same with memory as bytes.
  void add(const std::string& name, ElementType type, const std::vector<std::int64_t>& shape,
           const void* values);
  /// Makes `commit` fail at all processes, with this error.
  void refuse(const Error& error);

  /// Saves all added arrays with a text about them, such as the number of an iteration. When it returns, the
  /// checkpoint is on stable storage. Throws, at all processes: ENOSPC and other errors of disks; EINVAL
  /// (processes added different arrays), EEXIST (a disk array has the path), EBUSY (another job saves there).
  /// The previous checkpoint then stays, untouched. Collective; once.
  void commit(const std::string& metadata);

 private:
  struct OUTCORE_HIDDEN State;
  std::unique_ptr<State> state_;
};

/// A checkpoint that was opened. It stays readable until it is closed, whatever another job saves meanwhile.
/// All but `arrays`, `find` and `metadata` are collective.
class OUTCORE_API Checkpoint {
 public:
  /// The path is made in the collective gate: if `make` throws at one process, all throw. Throws ENOENT
  /// (there is none), EINVAL (the path is something else), ENOTSUP (of another version), EIO (damaged).
  static Checkpoint open(World& world, const std::function<std::string()>& make);
  ~Checkpoint();
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;

  [[nodiscard]] const std::vector<KeptArray>& arrays() const;  ///< in the order in which they were added
  [[nodiscard]] const KeptArray& find(const std::string& name) const;  ///< Error(ENOENT) if there is none
  /// The text that was passed to commit. Metadata of Python that are no text: as JSON.
  [[nodiscard]] const std::string& metadata() const;

  /// Opens the file of an array, to read from it in place. Close it before the checkpoint is saved again.
  /// ENOENT (no such array), EIO (another array is in its place).
  [[nodiscard]] DiskArray open_array(const std::string& name);
  /// Reads an array into a global array of its shape and type. Error(EINVAL) for another shape or type.
  void read(const std::string& name, GlobalArray& into);
  /// Reads the whole array into memory of each process: an mdspan of its shape, or a range. If the memory of
  /// one process has another type or shape, all throw Error(EINVAL).
  void read(const std::string& name, const Elements& into);
  /// The same with memory as bytes. `bytes` must be its size.
  void read(const std::string& name, void* into, std::int64_t bytes);

 private:
  struct OUTCORE_HIDDEN State;
  explicit Checkpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace outcore
