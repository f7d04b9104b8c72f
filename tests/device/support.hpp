// For tests of devices: scratch files, and bytes that show where they belong.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/file.hpp"
#include "support/check.hpp"

#ifdef __SANITIZE_THREAD__
/// In these tests children of fork start threads of their own.
extern "C" __attribute__((used)) const char* __tsan_default_options() {
  return "die_after_fork=0";
}
#endif

namespace support {

using Bytes = std::vector<std::byte>;

/// A directory that is removed with its object, on a disk if there is one: in OUTCORE_TEST_SCRATCH, or else
/// in /var/tmp.
class Scratch {
 public:
  Scratch() {
    const char* root = std::getenv("OUTCORE_TEST_SCRATCH");
    std::string pattern = std::string(root ? root : "/var/tmp") + "/outcore-test-XXXXXX";
    if (!mkdtemp(pattern.data())) throw std::runtime_error("mkdtemp " + pattern);
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  [[nodiscard]] std::string file(const std::string& name = "file") const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline Bytes pattern(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = std::byte(random() >> 56);
  return bytes;
}

inline void same(std::span<const std::byte> actual, std::span<const std::byte> expected,
                 std::source_location at = std::source_location::current()) {
  check::equal(actual.size(), expected.size(), at);
  for (std::size_t i = 0; i < actual.size(); ++i)
    if (actual[i] != expected[i])
      check::fail("byte " + std::to_string(i) + " of " + std::to_string(actual.size()) + " differs", at);
}

inline std::vector<iovec> list_of(std::vector<Bytes>& parts) {
  std::vector<iovec> list;
  for (Bytes& part : parts) list.push_back({part.data(), part.size()});
  return list;
}

}  // namespace support
