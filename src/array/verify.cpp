#include "array/verify.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "array/array_directory.hpp"
#include "array/manifest.hpp"
#include "device/buffer.hpp"
#include "device/directory.hpp"
#include "dio/chunks/grid.hpp"
#include "outcore/element_type.hpp"
#include "outcore/error.hpp"
#include "store/component.hpp"
#include "store/durable.hpp"
#include "store/state_lease.hpp"

namespace outcore {
namespace {

constexpr std::int64_t pass_bytes = 4 << 20;  // read at a time

array::Manifest manifest_of(const device::Directory& directory) {
  const std::string file = directory.path() + "/manifest";
  array::Manifest manifest = array::Manifest::decode(
      store::read_whole(file, array::Manifest::max_bytes, nullptr, directory.fd()), file);
  array::check_names(manifest, directory.path());
  return manifest;
}

/// Whether all tables of a state are held now, and have been there since.
bool hold(const device::Directory& directory, const array::Manifest& manifest,
          std::vector<store::StateLease>& leases) {
  leases.clear();
  const dio::ChunkGrid grid = manifest.grid();
  try {
    for (int c = 0; c < grid.components(); ++c)
      if (grid.slots(c) > 0 &&
          (manifest.shared || directory.holds(manifest.components[static_cast<std::size_t>(c)].data_name)))
        leases.emplace_back(directory, manifest.components[static_cast<std::size_t>(c)].table_name)
            .check(directory);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Opens the newest state, which a committing job does not remove while the leases exist. If a table is
/// missing although no other state was committed, that is damage, which its reader finds.
array::Manifest held_state(const device::Directory& directory, std::vector<store::StateLease>& leases) {
  array::Manifest manifest = manifest_of(directory);
  while (!hold(directory, manifest, leases)) {
    array::Manifest next = manifest_of(directory);
    if (next.generation == manifest.generation && next.identity == manifest.identity) break;
    manifest = std::move(next);
  }
  return manifest;
}

/// Reads slots first .. first + count; where that fails, one by one, to name each that is damaged.
void verify_slots(const store::Component& component, std::int64_t first, std::int64_t count,
                  std::span<std::byte> memory, Verification& result) {
  try {
    component
        .read_async(first, count,
                    memory.first(static_cast<std::size_t>(count * component.geometry().stride_bytes())))
        .wait();
  } catch (const Error& error) {
    if (count == 1) {
      result.damage.emplace_back(error.what());
      return;
    }
    for (std::int64_t slot = first; slot < first + count; ++slot)
      verify_slots(component, slot, 1, memory, result);
  }
}

void verify_component(const device::Directory& directory, const array::Manifest& manifest,
                      const dio::ChunkGrid& grid, int c, Verification& result) {
  const std::string& name = manifest.components[static_cast<std::size_t>(c)].data_name;
  const std::string data = directory.path() + "/" + name;
  if (grid.slots(c) == 0) return;
  if (!manifest.shared && !directory.holds(name)) {
    ++result.elsewhere;
    return;
  }
  const store::Component component = store::Component::open(
      data, array::read_table(manifest, c, directory),
      {.read_only = true, .directory = directory.fd(), .describe = [&](std::int64_t slot) {
         const std::int64_t chunk = grid.chunk_at(c, slot);
         return "chunk " + std::to_string(chunk) + " " + grid.chunk_box(chunk).text();
       }});
  const std::int64_t stride = component.geometry().stride_bytes();
  const std::int64_t at_once = std::max<std::int64_t>(pass_bytes / stride, 1);
  const device::Buffer buffer(static_cast<std::size_t>(at_once * stride));
  const std::int64_t slots = component.geometry().slots;
  // Slots that were never written have no place.
  const store::SlotTable& table = component.table();
  for (std::int64_t slot = table.next_written(0); slot >= 0;) {
    const std::int64_t count = std::min(at_once, slots - slot);
    verify_slots(component, slot, count, buffer.span(), result);
    slot = table.next_written(slot + count);
  }
  result.chunks += slots;
}

}  // namespace

ArrayFacts array_facts(const std::string& path, int contained) {
  const array::Manifest manifest = manifest_of(device::Directory(path, contained));
  const dio::ChunkGrid grid = manifest.grid();
  return {{{"shape", manifest.shape.text()},
           {"dtype", std::string(name(manifest.type))},
           {"chunk", manifest.chunk.text()},
           {"chunks", std::to_string(grid.chunks())},
           {"components", std::to_string(grid.components())},
           {"placement", manifest.shared ? "shared" : "local"},
           {"codec", store::text(manifest.codec)},
           {"generation", std::to_string(manifest.generation)},
           {"identity", manifest.identity}},
          std::string(reinterpret_cast<const char*>(manifest.user.data()), manifest.user.size())};
}

Verification verify_array(const std::string& path, int contained) {
  const device::Directory directory(path, contained);
  Verification result;
  std::optional<array::Manifest> manifest;
  std::vector<store::StateLease> leases;
  try {
    manifest = held_state(directory, leases);
  } catch (const Error& error) {
    if (error.errno_value() == ENOENT) throw;
    result.damage.emplace_back(error.what());
    return result;
  }
  const dio::ChunkGrid grid = manifest->grid();
  for (int c = 0; c < grid.components(); ++c) {
    try {
      verify_component(directory, *manifest, grid, c, result);
    } catch (const Error& error) {
      result.damage.emplace_back(error.what());
    }
  }
  return result;
}

}  // namespace outcore
