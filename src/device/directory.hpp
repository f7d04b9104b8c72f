// A directory that is held open, and in which anybody may have made entries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/descriptor.hpp"

namespace outcore::device {

/// Names are looked up in the directory itself, even if it was moved, and no symbolic link is followed. So
/// entries and changes of another party never lead out of it. Files in it are opened with
/// OpenOptions::directory. Throws Error.
class Directory {
 public:
  Directory() = default;  ///< none
  /// Symbolic links in `path` are followed, but none in its last `contained` names: Error(EINVAL). ENOENT and
  /// ENOTDIR as the system says.
  explicit Directory(std::string path, int contained = 0);
  /// Makes a directory; false if something has its name.
  static bool make(const std::string& path, int contained = 0);

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] int fd() const;  ///< Error(ENOENT) if there is none

  [[nodiscard]] std::vector<std::string> names() const;     ///< without . and ..
  [[nodiscard]] bool holds(const std::string& name) const;  ///< also a symbolic link to nothing
  [[nodiscard]] bool is_directory(const std::string& name) const;
  void remove(const std::string& name) const;       ///< a file or a link; nothing if it is not there
  void remove_tree(const std::string& name) const;  ///< an entry of any kind, with its contents

 private:
  Directory(int at, const std::string& name, std::string path);

  std::string path_;
  Descriptor fd_;
};

/// The last name of a path.
[[nodiscard]] std::string last_name(std::string_view path);

}  // namespace outcore::device
