// Disk arrays and their files: how they are made, found and committed.
#include <atomic>
#include <cerrno>
#include <span>
#include <utility>

#include "array/disk_array_state.hpp"
#include "outcore/device/file.hpp"
#include "outcore/error.hpp"
#include "outcore/file/scratch.hpp"
#include "outcore/store/checksum.hpp"
#include "outcore/store/durable.hpp"
#include "world/gate.hpp"

namespace outcore {
namespace {

/// The parts of a node, or of all if they share a disk, have to fit together.
void check_space(const World& world, const std::string& directory, Placement placement,
                 std::int64_t part_bytes) {
  const std::int64_t processes = placement == Placement::shared ? world.size() : world.node_size();
  const device::FileSystem disk = device::file_system(directory);
  const std::int64_t needed = part_bytes * processes;
  if (needed > disk.free_bytes)
    throw Error(ENOSPC, {.attempted = "create disk array",
                         .path = directory,
                         .detail = "it takes " + std::to_string(needed) + " bytes there, " +
                                   std::to_string(disk.free_bytes) + " are free"});
}

std::atomic<std::uint64_t> scratch_number;  ///< names of scratch files of this process

}  // namespace

store::Geometry DiskArray::State::geometry(int component) const {
  return {.slot_bytes = grid.chunk_bytes(),
          .slots = grid.slots(component),
          .element_bytes = static_cast<std::uint32_t>(grid.element_bytes()),
          .codec = codec,
          .shadow = persistent};
}

store::ComponentOptions DiskArray::State::component_options(int component) const {
  return {.read_only = read_only,
          .unlink_after_open = !persistent,
          .describe = [this, component](std::int64_t slot) {
            const std::int64_t chunk = grid.chunk_at(component, slot);
            return "chunk " + std::to_string(chunk) + " " + grid.chunk_box(chunk).text();
          }};
}

void DiskArray::State::create(const Make& make) {
  constexpr std::string_view what = "create disk array";
  DiskArrayOptions options;
  world.together(what, 0, [&] {  // whose arguments are wrong hears why, before they are compared
    Extents shape;
    make(shape, type, options);
    codec = options.codec;
    metadata = options.metadata;
    persistent = !options.path.empty();
    store::check(codec);
    const std::size_t element_bytes = size_bytes(type);
    const Extents chunk =
        options.chunk.rank() > 0 ? options.chunk : choose_chunk(shape, element_bytes, options.typical);
    grid = ChunkGrid(shape, chunk, element_bytes, world.size());
  });
  const std::string arguments = grid.shape().text() + std::string(name(type)) + options.path +
                                grid.chunk().text() + store::text(codec) + metadata +
                                std::to_string(static_cast<int>(options.placement)) +
                                std::to_string(options.overwrite) + std::to_string(options.expected_bytes);
  world.together(what, fingerprint(std::as_bytes(std::span(arguments))), [] {});
  id = std::to_string(queue.next_number());
  if (persistent)
    directory = array::ArrayDirectory::create(world, options.path, options.placement, options.overwrite);
  try {
    world.together(what, 0, [&] {
      const int mine = world.rank();
      const std::string place = persistent ? directory.path() : file::process_directory(world.scratch());
      const std::int64_t whole = geometry(mine).slots * geometry(mine).stride_bytes();
      const std::int64_t expected =
          options.expected_bytes < 0 ? whole : std::min(whole, options.expected_bytes / world.size());
      const Placement placement = persistent ? directory.placement() : Placement::local;
      if (codec.codec == store::Codec::none) check_space(world, place, placement, expected);
      if (grid.slots(mine) == 0) return;
      const std::string path = persistent ? directory.file(array::component_name(mine))
                                          : place + "/array." + std::to_string(scratch_number++);
      components.push_back({mine, std::make_unique<store::Component>(store::Component::create(
                                      path, geometry(mine), component_options(mine)))});
    });
  } catch (const Error&) {  // by all processes
    components.clear();
    if (persistent) directory.remove(world.transport());
    throw;
  }
  changed = true;
}

void DiskArray::State::load(const std::string& path, bool only_read) {
  constexpr std::string_view what = "open disk array";
  const std::string arguments = path + std::to_string(only_read);
  world.together(what, fingerprint(std::as_bytes(std::span(arguments))), [] {});
  persistent = true;
  read_only = only_read;
  std::vector<std::byte> bytes;
  directory = array::ArrayDirectory::open(world, path, bytes);
  store::Manifest manifest;
  world.together(what, 0, [&] {
    manifest = store::Manifest::decode(bytes, directory.path());
    type = manifest.type;
    codec = manifest.codec;
    metadata.assign(reinterpret_cast<const char*>(manifest.user.data()), manifest.user.size());
    generation = manifest.generation;
    grid = manifest.grid();
  });
  id = std::to_string(queue.next_number());
  const std::vector<int> mine = directory.share(world, grid.components());
  world.together(what, 0, [&] {
    for (const int c : mine) {
      if (grid.slots(c) == 0) continue;
      store::SlotTable slots = array::read_table(manifest, c, directory.path());
      components.push_back(
          {c, std::make_unique<store::Component>(store::Component::open(
                  directory.file(array::component_name(c)), std::move(slots), component_options(c)))});
      if (!read_only) components.back().file->release_unused();
    }
    if (!read_only) directory.remove_tables_but(generation);
  });
}

void DiskArray::State::commit(const TransferQueue::Context& context, const std::string& new_metadata) {
  constexpr std::string_view what = "commit disk array";
  transport::Transport& group = context.transport;
  const std::uint64_t next = generation + 1;
  const auto count = static_cast<std::size_t>(grid.components());
  std::vector<std::int64_t> facts(2 * count);  // size and checksum of each table, from its owner
  world::agree(group, what, [&] {
    for (const array::OwnedComponent& each : components) {
      each.file->flush();
      if (!persistent) continue;
      const std::vector<std::byte> table = each.file->encode_table();
      store::write_durably(directory.file(array::table_name(each.index, next)), table);
      const auto c = static_cast<std::size_t>(each.index);
      facts[2 * c] = static_cast<std::int64_t>(table.size());
      facts[2 * c + 1] = store::crc32c(table);
    }
  });
  if (!persistent) {
    metadata = new_metadata;
    return;
  }
  group.all_reduce(std::span(facts), transport::Reduction::sum);
  const auto* text = reinterpret_cast<const std::byte*>(new_metadata.data());
  store::Manifest manifest{.shape = grid.shape(),
                           .chunk = grid.chunk(),
                           .type = type,
                           .group = grid.group(),
                           .codec = codec,
                           .shared = directory.placement() == Placement::shared,
                           .generation = next,
                           .components = {},
                           .user = {text, text + new_metadata.size()}};
  for (std::size_t c = 0; c < count; ++c)
    manifest.components.push_back({array::component_name(static_cast<int>(c)),
                                   array::table_name(static_cast<int>(c), next), facts[2 * c],
                                   static_cast<std::uint32_t>(facts[2 * c + 1])});
  directory.commit(group, manifest.encode());
  generation = next;
  metadata = new_metadata;
  changed = false;
  world::agree(group, what, [&] {
    for (const array::OwnedComponent& each : components) each.file->committed();
    directory.remove_tables_but(generation);
  });
}

}  // namespace outcore
