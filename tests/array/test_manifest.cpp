// The manifest: decoding returns what was encoded, and errors say what is wrong with a file.
#include <bit>
#include <cerrno>
#include <cstring>

#include "outcore/error.hpp"
#include "store/file_header.hpp"
#include "store/samples.hpp"
#include "support/check.hpp"

using namespace outcore;
using namespace outcore::array;
using namespace outcore::store;
using samples::Bytes;

namespace {

constexpr std::size_t order_at = 8, version_at = 12, body_bytes_at = 16, header_crc_at = 28;

Error refusal(const Bytes& bytes) {
  return check::throws<Error>([&] { static_cast<void>(Manifest::decode(bytes, "/some/manifest")); });
}

void refuses(const Bytes& bytes, int errno_value, const std::string& text,
             std::source_location at = std::source_location::current()) {
  const Error error = refusal(bytes);
  check::equal(error.errno_value(), errno_value, at);
  check::contains(error.what(), "/some/manifest", at);
  check::contains(error.what(), text, at);
}

void refused(Manifest manifest, const std::string& text,
             std::source_location at = std::source_location::current()) {
  const Error error = check::throws<Error>([&] { static_cast<void>(manifest.encode()); }, at);
  check::equal(error.errno_value(), EINVAL, at);
  check::contains(error.what(), text, at);
}

Bytes swapped_order(Bytes bytes) {
  for (std::size_t at : {order_at, version_at, header_crc_at})
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at) + 4);
  return bytes;
}

/// The same body as a file of another version.
Bytes of_version(const Bytes& bytes, std::uint32_t version) {
  const FileKind kind{{'O', 'U', 'T', 'C', 'A', 'R', 'R', 'Y'}, version, ""};
  return with_file_header(kind, std::span(bytes).subspan(file_header_bytes));
}

}  // namespace

TEST("what is encoded is decoded") {
  const Manifest manifest = samples::manifest();
  check::is_true(Manifest::decode(manifest.encode(), "name") == manifest);
  Manifest plain = manifest;
  plain.codec = {};
  plain.user.clear();
  check::is_true(Manifest::decode(plain.encode(), "name") == plain);
}

TEST("grid and geometry follow from the manifest") {
  const Manifest manifest = samples::manifest();
  check::equal(manifest.grid().chunks(), 16 * 32);
  check::equal(manifest.geometry(0).slot_bytes, 64 * 64 * 3 * 16);
  check::equal(manifest.geometry(0).slots + manifest.geometry(1).slots + manifest.geometry(2).slots, 16 * 32);
  check::is_true(manifest.geometry(2).shadow);
}

TEST("a file of something else is no Outcore array") {
  refuses(Bytes(1000, std::byte{'x'}), EINVAL, "not an Outcore array");
  refuses({}, EINVAL, "not an Outcore array: the file is empty");
  refuses(samples::table(samples::geometry()).encode(), EINVAL, "not an Outcore array");
}

TEST("a truncated file says how many bytes there are and how many there should be") {
  Bytes bytes = samples::manifest().encode();
  const std::string need = std::to_string(bytes.size());
  bytes.resize(bytes.size() - 5);
  refuses(bytes, EIO, "truncated: have " + std::to_string(bytes.size()) + " bytes, need " + need);
  bytes.resize(20);
  refuses(bytes, EIO, "truncated: have 20 bytes, need 32 or more");
  bytes.resize(3);
  refuses(bytes, EIO, "truncated: have 3 bytes");
}

TEST("a file with something behind its end is refused") {
  Bytes bytes = samples::manifest().encode();
  bytes.resize(bytes.size() + 1);
  refuses(bytes, EIO, "too long: have " + std::to_string(bytes.size()));
}

TEST("another version is named") {
  refuses(of_version(samples::manifest().encode(), 7), ENOTSUP,
          "an Outcore array of format version 7; this program reads version 2");
}

TEST("the other byte order is named") {
  refuses(swapped_order(samples::manifest().encode()), ENOTSUP, "other byte order");
}

TEST("damage is told from other versions, sizes and byte orders") {
  const Bytes bytes = samples::manifest().encode();
  for (std::size_t at : {order_at, version_at, body_bytes_at, header_crc_at}) {
    Bytes damaged = bytes;
    damaged[at] ^= std::byte{4};
    refuses(damaged, EIO, "damaged: its header");
  }
  Bytes damaged = bytes;
  damaged.back() ^= std::byte{4};
  refuses(damaged, EIO, "damaged: its content");
}

TEST("manifests that describe no array are not written") {
  const Manifest good = samples::manifest();
  const auto with = [&](auto change) {
    Manifest manifest = good;
    change(manifest);
    return manifest;
  };
  refused(with([](Manifest& m) { m.components.clear(); }), "0 components");
  refused(with([](Manifest& m) { m.shape = {1000, 2000}; }), "as many in both");
  refused(with([](Manifest& m) { m.shape[0] = -1; }), "at least 1");
  refused(with([](Manifest& m) { m.group = 0; }), "groups of 0");
  refused(with([](Manifest& m) { m.block_bytes = 1000; }), "blocks of 1000");
  refused(with([](Manifest& m) { m.chunk = {1024, 2048, 48}; }), "slots of");
  refused(with([](Manifest& m) { m.type = ElementType{77}; }), "element type 77");
  refused(with([](Manifest& m) { m.codec.level = 10; }), "levels are 1 to 9");
  refused(with([](Manifest& m) { m.user.resize(Manifest::max_user_bytes + 1); }), "user data");
  refused(with([](Manifest& m) { m.components[1].table_bytes = -1; }), "table of -1");
  for (const std::string name : {"", ".", "..", "../x", "a/b", "/x"}) {
    refused(with([&](Manifest& m) { m.components[1].data_name = name; }), "not the name of a file");
    refused(with([&](Manifest& m) { m.components[1].table_name = name; }), "not the name of a file");
  }
  refused(with([](Manifest& m) { m.components[0].data_name = std::string("a\0b", 3); }), "not the name");
  refused(with([](Manifest& m) { m.components[0].data_name = std::string(256, 'a'); }), "not the name");
}

TEST_MAIN
