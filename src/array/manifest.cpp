#include "array/manifest.hpp"

#include <algorithm>
#include <cerrno>

#include "outcore/error.hpp"
#include "store/file_header.hpp"

namespace outcore::array {
namespace {

constexpr store::FileKind kind{
    {'O', 'U', 'T', 'C', 'A', 'R', 'R', 'Y'}, Manifest::version, "an Outcore array"};

[[noreturn]] void refuse(const std::string& detail) {
  throw Error(EINVAL, {.attempted = "manifest of an array", .detail = detail});
}

void check_name(const std::string& name) {
  const bool good = !name.empty() && name.size() <= Manifest::max_name_bytes && name != "." && name != ".." &&
                    std::ranges::none_of(name, [](char c) { return c == '/' || c == '\0'; });
  if (good) return;
  std::string shown = name.substr(0, 64);
  std::ranges::replace_if(shown, [](char c) { return c < ' '; }, '?');
  refuse("'" + shown + "' is not the name of a file");
}

void write_extents(store::BodyWriter& writer, const Extents& extents) {
  writer.number(static_cast<std::uint8_t>(extents.rank()));
  for (const std::int64_t value : extents.values()) writer.number(value);
}

Extents read_extents(store::BodyReader& reader) {
  Extents extents = Extents::filled(reader.number<std::uint8_t>("the number of dimensions", 1, max_rank), 0);
  for (int i = 0; i < extents.rank(); ++i) extents[i] = reader.number<std::int64_t>();
  return extents;
}

/// Bytes that a component takes at least: two lengths, two names of one byte, size and checksum.
constexpr std::size_t min_component_bytes = 4 + 1 + 4 + 1 + 8 + 4;

}  // namespace

dio::ChunkGrid Manifest::grid() const {
  return {shape, chunk, size_bytes(type), static_cast<int>(components.size()), group};
}

store::Geometry Manifest::geometry(int component) const {
  const dio::ChunkGrid chunks = grid();
  return {.slot_bytes = chunks.chunk_bytes(),
          .slots = chunks.slots(component),
          .block_bytes = block_bytes,
          .element_bytes = static_cast<std::uint32_t>(size_bytes(type)),
          .codec = codec,
          .shadow = true};
}

void check_identity(const std::string& identity) {
  if (identity.size() > Manifest::max_identity_bytes ||
      std::ranges::any_of(identity, [](char c) { return c < ' ' || c > '~'; }))
    refuse("an identity of " + std::to_string(identity.size()) + " bytes; at most " +
           std::to_string(Manifest::max_identity_bytes) + " are possible, in printable ASCII");
}

void Manifest::check() const {
  check_identity(identity);
  if (generation == 0 || generation > max_generation) refuse("generation " + std::to_string(generation));
  if (components.empty() || components.size() > max_components)
    refuse(std::to_string(components.size()) + " components; 1 to " + std::to_string(max_components) +
           " are possible");
  if (user.size() > max_user_bytes)
    refuse(std::to_string(user.size()) + " bytes of user data; " + std::to_string(max_user_bytes) +
           " are possible");
  if (name(type) == "unknown") refuse("element type " + std::to_string(int(type)));
  store::check(geometry(0));  // the one with the most slots
  for (const Component& component : components) {
    check_name(component.data_name);
    check_name(component.table_name);
    if (component.table_bytes < 0) refuse("a table of " + std::to_string(component.table_bytes) + " bytes");
  }
}

std::vector<std::byte> Manifest::encode() const {
  check();
  store::BodyWriter writer;
  write_extents(writer, shape);
  write_extents(writer, chunk);
  writer.number(static_cast<std::uint8_t>(type));
  writer.number(block_bytes);
  writer.number(group);
  writer.number(static_cast<std::uint8_t>(codec.codec));
  writer.number(static_cast<std::uint8_t>(codec.compressor));
  writer.number(static_cast<std::uint8_t>(codec.filter));
  writer.number(codec.level);
  writer.number(static_cast<std::uint8_t>(shared));
  writer.number(generation);
  writer.text(identity);
  writer.number(static_cast<std::uint32_t>(components.size()));
  for (const Component& component : components) {
    writer.text(component.data_name);
    writer.text(component.table_name);
    writer.number(component.table_bytes);
    writer.number(component.table_crc);
  }
  writer.number(static_cast<std::uint32_t>(user.size()));
  writer.raw(user);
  return store::with_file_header(kind, writer.body());
}

Manifest Manifest::decode(std::span<const std::byte> bytes, const std::string& path) {
  store::BodyReader reader(store::checked_body(kind, bytes, path), kind, path);
  Manifest manifest;
  manifest.shape = read_extents(reader);
  manifest.chunk = read_extents(reader);
  manifest.type = static_cast<ElementType>(reader.number<std::uint8_t>());
  manifest.block_bytes = reader.number<std::int64_t>();
  manifest.group = reader.number<std::int64_t>();
  manifest.codec.codec = static_cast<store::Codec>(reader.number<std::uint8_t>());
  manifest.codec.compressor = static_cast<store::Compressor>(reader.number<std::uint8_t>());
  manifest.codec.filter = static_cast<store::Filter>(reader.number<std::uint8_t>());
  manifest.codec.level = reader.number<std::uint8_t>();
  manifest.shared = reader.number<std::uint8_t>("the placement", 0, 1) != 0;
  manifest.generation = reader.number<std::uint64_t>();
  manifest.identity = reader.text(max_identity_bytes);
  const auto count = reader.number<std::uint32_t>(
      "the number of components", 1,
      static_cast<std::uint32_t>(std::min(max_components, reader.left() / min_component_bytes)));
  manifest.components.resize(count);
  for (Component& component : manifest.components) {
    component.data_name = reader.text(max_name_bytes);
    component.table_name = reader.text(max_name_bytes);
    component.table_bytes = reader.number<std::int64_t>();
    component.table_crc = reader.number<std::uint32_t>();
  }
  const auto user = reader.raw(reader.number<std::uint32_t>());
  manifest.user.assign(user.begin(), user.end());
  reader.finish();
  try {
    manifest.check();
  } catch (const Error& error) {
    if (error.errno_value() == ENOTSUP)
      throw Error(ENOTSUP, {.attempted = "open array", .path = path, .detail = error.context().detail});
    reader.fail(error.context().attempted + ": " + error.context().detail);
  }
  return manifest;
}

}  // namespace outcore::array
