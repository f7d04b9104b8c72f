// The common header of the small files of the store: the kind of file, and a checksum over all of it. Numbers
// are little-endian on every machine that can run this; a mark checks it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace outcore::store {

/// The kind of a file, and the version that its reader understands. The header is the same for all versions.
struct FileKind {
  std::array<char, 8> magic;
  std::uint32_t version;
  const char* what;  ///< as in "not WHAT"
};

inline constexpr std::size_t file_header_bytes = 32;

/// Header and body as bytes. Any change of up to 32 bits in a row, or of a few bits anywhere, is detected.
[[nodiscard]] std::vector<std::byte> with_file_header(const FileKind& kind, std::span<const std::byte> body);

/// The body of a file. Throws Error, naming `path`: EINVAL for another kind of file, ENOTSUP for another
/// version or byte order, EIO if it is truncated, too long or damaged. `bytes` may be anything.
[[nodiscard]] std::span<const std::byte> checked_body(const FileKind& kind, std::span<const std::byte> bytes,
                                                      const std::string& path);

/// Appends numbers and strings to a body.
class BodyWriter {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  void number(T value) {
    raw(std::as_bytes(std::span(&value, 1)));
  }
  void raw(std::span<const std::byte> bytes) { body_.insert(body_.end(), bytes.begin(), bytes.end()); }
  /// Appends the length of a text, then the text.
  void text(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size()));
    raw(std::as_bytes(std::span(text)));
  }
  [[nodiscard]] const std::vector<std::byte>& body() const noexcept { return body_; }

 private:
  std::vector<std::byte> body_;
};

/// Reads numbers and strings from a body. Throws Error(EIO), naming the path, if the body ends too early, or
/// by `fail`.
class BodyReader {
 public:
  BodyReader(std::span<const std::byte> body, const FileKind& kind, const std::string& path)
      : rest_(body), kind_(kind), path_(path) {}

  template <class T>
    requires std::is_arithmetic_v<T>
  [[nodiscard]] T number() {
    T value;
    std::memcpy(&value, raw(sizeof value).data(), sizeof value);
    return value;
  }
  /// A number that must lie in min .. max.
  template <class T>
  [[nodiscard]] T number(const char* name, T min, T max) {
    const T value = number<T>();
    if (value < min || value > max) fail(std::string(name) + " is " + std::to_string(value));
    return value;
  }
  [[nodiscard]] std::span<const std::byte> raw(std::size_t size_bytes) {
    if (size_bytes > rest_.size())
      fail("it ends " + std::to_string(size_bytes - rest_.size()) + " bytes too early");
    const auto part = rest_.first(size_bytes);
    rest_ = rest_.subspan(size_bytes);
    return part;
  }
  [[nodiscard]] std::string text(std::size_t max_bytes) {
    const auto size = number<std::uint32_t>("the length of a name", 0, static_cast<std::uint32_t>(max_bytes));
    const auto part = raw(size);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  [[nodiscard]] std::size_t left() const noexcept { return rest_.size(); }
  void finish() {
    if (!rest_.empty()) fail(std::to_string(rest_.size()) + " bytes too many");
  }
  [[noreturn]] void fail(const std::string& detail) const;

 private:
  std::span<const std::byte> rest_;
  const FileKind& kind_;
  const std::string& path_;
};

}  // namespace outcore::store
