#include "store/file_header.hpp"

#include <algorithm>
#include <cerrno>

#include "outcore/error.hpp"
#include "store/checksum.hpp"

namespace outcore::store {
namespace {

constexpr std::uint32_t native_order = 0x01020304;
constexpr std::uint32_t foreign_order = 0x04030201;

/// As it lies in the file.
struct Header {
  std::array<char, 8> magic;
  std::uint32_t order;
  std::uint32_t version;
  std::uint64_t body_bytes;
  std::uint32_t body_crc;
  std::uint32_t header_crc;  ///< of the members before it
};
static_assert(sizeof(Header) == file_header_bytes);

std::uint32_t crc_of(const Header& header) {
  return crc32c(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, header_crc)));
}

[[noreturn]] void refuse(int errno_value, const std::string& path, const std::string& detail) {
  throw Error(errno_value, {.attempted = "open", .path = path, .detail = detail});
}

std::string have_and_need(std::size_t have, std::uint64_t need) {
  return "have " + std::to_string(have) + " bytes, need " + std::to_string(need);
}

}  // namespace

std::vector<std::byte> with_file_header(const FileKind& kind, std::span<const std::byte> body) {
  Header header{.magic = kind.magic,
                .order = native_order,
                .version = kind.version,
                .body_bytes = body.size(),
                .body_crc = crc32c(body),
                .header_crc = 0};
  header.header_crc = crc_of(header);
  std::vector<std::byte> bytes(sizeof header + body.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::ranges::copy(body, bytes.begin() + sizeof header);
  return bytes;
}

std::span<const std::byte> checked_body(const FileKind& kind, std::span<const std::byte> bytes,
                                        const std::string& path) {
  Header header{};
  const std::size_t there = std::min(bytes.size(), sizeof header);
  if (there > 0) std::memcpy(&header, bytes.data(), there);
  const std::string what = kind.what;
  if (there == 0 || std::memcmp(&header, kind.magic.data(), std::min(there, kind.magic.size())) != 0)
    refuse(EINVAL, path, "not " + what + (there == 0 ? ": the file is empty" : ""));
  if (there < sizeof header)
    refuse(EIO, path, what + ", truncated: " + have_and_need(bytes.size(), sizeof header) + " or more");
  if (header.order == foreign_order)
    refuse(ENOTSUP, path, what + ", written by a machine of the other byte order");
  if (header.order != native_order || crc_of(header) != header.header_crc)
    refuse(EIO, path, what + ", damaged: its header does not match its checksum");
  if (header.version != kind.version)
    refuse(ENOTSUP, path,
           what + " of format version " + std::to_string(header.version) + "; this program reads version " +
               std::to_string(kind.version));
  const std::size_t body_bytes = bytes.size() - sizeof header;
  if (header.body_bytes != body_bytes)
    refuse(EIO, path,
           what + (body_bytes < header.body_bytes ? ", truncated: " : ", too long: ") +
               have_and_need(bytes.size(), header.body_bytes + sizeof header));
  const auto body = bytes.subspan(sizeof header);
  if (crc32c(body) != header.body_crc)
    refuse(EIO, path, what + ", damaged: its content does not match its checksum");
  return body;
}

void BodyReader::fail(const std::string& detail) const {
  refuse(EIO, path_, std::string(kind_.what) + ", damaged or written wrongly: " + detail);
}

}  // namespace outcore::store
