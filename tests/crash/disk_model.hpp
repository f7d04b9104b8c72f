// What a disk may hold after a loss of power: a model of a directory, its files, and changes not yet synced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace crash {

using Bytes = std::vector<std::byte>;

/// Something that a process has done to a file or directory. These have numbers, which are never used again.
struct Operation {
  enum class Kind : std::uint8_t {
    make_file,
    make_directory,
    enter,   ///< `name` in directory `at` is `node` from now on
    leave,   ///< `name` in directory `at` no longer exists
    rename,  ///< `from` in directory `from_at` becomes `name` in directory `at`: both or nothing
    write,   ///< `data` at `offset` of a file
    size,    ///< the size of a file becomes `offset`
    punch,   ///< `size` bytes of a file from `offset` on are zeros, or what is beyond the end
    sync,    ///< a file or directory is synced; `name` is its path
    allow,   ///< from now on the states in `states` may be found, one bit for each
  };
  Kind kind{};
  int node = -1, at = -1, from_at = -1;
  std::string name = {}, from = {};
  std::int64_t offset = 0, size = 0;
  Bytes data = {};
  std::uint64_t states = 0;
};

using Log = std::vector<Operation>;

/// Files and directories by their names in the directory that was recorded; directories have no content.
struct Tree {
  struct Entry {
    bool is_directory = false;
    int node = -1;
    Bytes content = {};
  };
  std::map<std::string, Entry> entries;

  [[nodiscard]] std::uint64_t hash() const;
  void write(const std::string& directory) const;  ///< into an empty directory
};

/// A disk that does the worst that POSIX allows. Changes of a file or directory since its last sync may have
/// reached the disk or not: each operation by itself, each sector (512 bytes) of a write by itself, and the
/// size of a file apart from its content. A rename is never half done. The sync of a file does not sync its
/// name.
class Disk {
 public:
  static constexpr int root = 0;

  Disk();
  /// The content of a real directory, all of it safe.
  explicit Disk(const std::string& directory);

  void apply(const Operation& operation);
  /// The number that the next file or directory gets.
  [[nodiscard]] int next_node() const noexcept { return static_cast<int>(nodes_.size()); }
  [[nodiscard]] std::uint64_t allowed() const noexcept { return allowed_; }
  /// The number of operations that are not safe.
  [[nodiscard]] std::size_t pending() const;

  [[nodiscard]] Tree live() const;                          ///< what processes see, while there is power
  [[nodiscard]] Tree image(std::mt19937_64& random) const;  ///< what may be found later

 private:
  struct Node {
    bool is_directory = false;
    Bytes content = {};                     ///< safe
    std::map<std::string, int> names = {};  ///< safe
    Log pending = {};
  };
  class Choice;

  void scan(const std::string& directory, int node);
  static Bytes content(const Node& node, Choice& choice);
  static std::map<std::string, int> names(const Node& node, int number, Choice& choice);
  void add(Tree& tree, const std::string& prefix, int node, Choice& choice) const;
  [[nodiscard]] Tree tree(Choice& choice) const;

  std::vector<Node> nodes_;
  std::uint64_t allowed_ = 0;
};

}  // namespace crash
