// Checkpoints: named arrays and a text about them, saved together, at once or not at all.
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

/// What an array of a checkpoint was saved from.
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
  std::vector<std::int64_t> shape;       ///< of what was saved; empty: one element
  std::vector<std::int64_t> file_shape;  ///< of its file: the same, or one element if that has none
  std::string identity;                  ///< of its file
  std::int64_t commits = 0;              ///< of its file
};

struct CheckpointOptions {
  std::string path = {};  ///< a directory, whose parent must exist
  store::CodecOptions codec = {};
  Placement placement = Placement::automatic;
};

/// Saves arrays under a name, in place of the checkpoint that is there. It opens with any number of
/// processes and nodes, also in Python (outcore.checkpoint), as those of Python open here.
///
///     manifest, component.0, ...    a persistent array of one number, whose metadata name the generation
///     arrays.<generation>/<name>    the persistent arrays of that generation
///
/// A new generation is written beside the old one, then committed by the small array, and only then the old
/// one goes. A process that is killed at any moment leaves the previous checkpoint or the new one.
///
/// Nothing but `commit` is collective. Arrays and memory that were added must stay as they are until it ends.
class OUTCORE_API CheckpointSaving {
 public:
  CheckpointSaving(World& world, CheckpointOptions options);
  ~CheckpointSaving();
  CheckpointSaving(CheckpointSaving&&) noexcept;
  CheckpointSaving& operator=(CheckpointSaving&&) noexcept;

  /// Names are made of letters, digits and _ . + -, at most 100, and come once. An Error(EINVAL) is also that
  /// of `commit`, at all processes.
  void add(const std::string& name, const GlobalArray& array);
  void add(const std::string& name, DiskArray& array);
  /// Memory that is the same at all processes, in C order without gaps: an mdspan, or a range of the given
  /// shape (none: one element) or of one axis.
  void add(const std::string& name, const ConstElements& values) { add(name, values, values.shape()); }
  void add(const std::string& name, const ConstElements& values, const Extents& shape);
  /// The same with memory as bytes.
  void add(const std::string& name, ElementType type, const std::vector<std::int64_t>& shape,
           const void* values);
  /// `commit` fails at all processes, with this error.
  void refuse(const Error& error);

  /// Saves all of it, with a text of what the checkpoint is, such as the number of an iteration. When it
  /// returns the checkpoint is on stable storage. Throws, at all processes: ENOSPC and what else disks say;
  /// EINVAL (processes that added different arrays), EEXIST (a disk array has the path), EBUSY (somebody else
  /// saves). Then the previous checkpoint is there, untouched. Collective; once.
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
  /// (there is none), EINVAL (something else is there), ENOTSUP (of another version), EIO (damaged).
  static Checkpoint open(World& world, const std::function<std::string()>& make);
  ~Checkpoint();
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;

  [[nodiscard]] const std::vector<KeptArray>& arrays() const;  ///< in the order in which they were added
  [[nodiscard]] const KeptArray& find(const std::string& name) const;  ///< Error(ENOENT) if there is none
  /// The text that was given to commit. What Python saved, if it is no text: as JSON.
  [[nodiscard]] const std::string& metadata() const;

  /// The file of an array, to read from, in place. Close it before the checkpoint is saved again. ENOENT (no
  /// such array), EIO (another array is in its place).
  [[nodiscard]] DiskArray open_array(const std::string& name);
  /// Reads an array into one of its shape and type. Error(EINVAL) for another one.
  void read(const std::string& name, GlobalArray& into);
  /// All of it into the memory of each process: an mdspan of its shape, or a range. Memory of another type or
  /// shape at one process is Error(EINVAL) at all.
  void read(const std::string& name, const Elements& into);
  /// The same with memory as bytes. `bytes` must be its size.
  void read(const std::string& name, void* into, std::int64_t bytes);

 private:
  struct OUTCORE_HIDDEN State;
  explicit Checkpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace outcore
