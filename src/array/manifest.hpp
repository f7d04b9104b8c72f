// The manifest of a persistent array: its properties, and the files of its committed state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dio/chunks/grid.hpp"
#include "outcore/box.hpp"
#include "outcore/element_type.hpp"
#include "store/geometry.hpp"

namespace outcore::array {

/// Written last, by write_durably: so an array is in the state before a commit or after it. For each
/// component it names the file of chunks and the file of its table; size and checksum identify the version of
/// the table.
struct Manifest {
  static constexpr std::uint32_t version = 2;
  static constexpr std::size_t max_components = 65536;
  static constexpr std::size_t max_name_bytes = 255;
  static constexpr std::size_t max_user_bytes = std::size_t{16} << 20;
  static constexpr std::size_t max_bytes =
      max_user_bytes + max_components * (2 * max_name_bytes + 32) + 4096;  ///< of the file
  static constexpr std::uint64_t max_generation = std::uint64_t{1} << 62;
  static constexpr std::size_t max_identity_bytes = 255;

  struct Component {
    std::string data_name, table_name;  ///< in the array's directory; no paths
    std::int64_t table_bytes = 0;
    std::uint32_t table_crc = 0;  ///< crc32c of the whole table file
    friend bool operator==(const Component&, const Component&) = default;
  };

  Extents shape, chunk;
  ElementType type = ElementType::float64;
  std::int64_t block_bytes = 128 << 10;
  std::int64_t group = dio::ChunkGrid::default_group;
  store::CodecOptions codec;
  bool shared = true;            ///< one directory for all processes, not one for each node
  std::uint64_t generation = 0;  ///< number of the commit, from 1
  std::string identity;          ///< set when the array was made; printable
  std::vector<Component> components;
  std::vector<std::byte> user;  ///< opaque here

  friend bool operator==(const Manifest&, const Manifest&) = default;

  [[nodiscard]] dio::ChunkGrid grid() const;                    ///< throws as ChunkGrid does
  [[nodiscard]] store::Geometry geometry(int component) const;  ///< with shadow, as persistent arrays are
  /// Throws Error(EINVAL), which names the field: invalid numbers, invalid names, or something too large.
  void check() const;

  /// As a file: with magic, version, byte order and checksums. Throws as check does.
  [[nodiscard]] std::vector<std::byte> encode() const;
  /// The manifest in `bytes`, which may be anything. Throws Error naming `path`: EINVAL if it is not of an
  /// Outcore array, ENOTSUP for another version, byte order or a codec that is not here, EIO if it is
  /// truncated or damaged.
  [[nodiscard]] static Manifest decode(std::span<const std::byte> bytes, const std::string& path);
};

/// Throws Error(EINVAL) for an identity that is too long, or not printable.
void check_identity(const std::string& identity);

}  // namespace outcore::array
