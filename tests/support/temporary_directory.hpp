// A directory for one test, which is removed with its object.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::string& parent = "/var/tmp")
      : path_(parent + "/outcore-test-XXXXXX") {
    if (!mkdtemp(path_.data()))
      throw std::filesystem::filesystem_error("mkdtemp", path_,
                                              std::error_code(errno, std::generic_category()));
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  operator const std::string&() const { return path_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  /// The number of entries whose names begin with `prefix`.
  [[nodiscard]] int count(const std::string& prefix = "") const {
    int found = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      found += entry.path().filename().string().starts_with(prefix);
    return found;
  }

 private:
  std::string path_;
};
