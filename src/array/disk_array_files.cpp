// Disk arrays and their files: how they are made, found and committed.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <utility>

#include "array/disk_array_state.hpp"
#include "base/file_size_limit.hpp"
#include "device/file.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"
#include "outcore/scratch.hpp"
#include "store/checksum.hpp"
#include "store/durable.hpp"
#include "world/gate.hpp"

namespace outcore {
namespace {

/// The parts of the processes of a node, or of all that share a disk, must fit on the disk together.
void check_space(const World& world, const std::string& directory, Placement placement,
                 std::int64_t part_bytes, bool replaces) {
  const std::int64_t processes = placement == Placement::shared ? world.size() : world.node_size();
  const device::FileSystem disk = device::file_system(directory);
  const std::int64_t needed = part_bytes * processes;
  if (needed > disk.free_bytes)
    throw Error(ENOSPC,
                {.attempted = "create disk array",
                 .path = directory,
                 .detail = "it takes " + std::to_string(needed) + " bytes there, " +
                           std::to_string(disk.free_bytes) + " are free" +
                           (replaces ? "; the array that it replaces stays until the first commit" : "")});
}

/// The process of each component; each process knows its own. Collective.
std::vector<int> owners_of_all(World& world, std::span<const int> mine, int components) {
  std::vector<std::int64_t> owners(static_cast<std::size_t>(components), -1);
  for (const int c : mine) owners[static_cast<std::size_t>(c)] = world.rank();
  world.transport().all_reduce(std::span(owners), transport::Reduction::max);
  return {owners.begin(), owners.end()};
}

/// An identity for an array that was given none. Collective.
std::string new_identity(World& world) {
  std::array<std::uint32_t, 4> numbers{};
  if (world.rank() == 0) {
    std::random_device random;
    for (std::uint32_t& each : numbers) each = random();
  }
  world.transport().broadcast(std::as_writable_bytes(std::span(numbers)), 0);
  std::string text;
  for (const std::uint32_t each : numbers) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08x", each);
    text += digits;
  }
  return text;
}

std::atomic<std::uint64_t> scratch_number;  ///< names of scratch files of this process

}  // namespace

store::Geometry DiskArray::State::geometry(int component) const {
  return {.slot_bytes = grid.chunk_bytes(),
          .slots = grid.slots(component),
          .block_bytes = block_bytes,
          .element_bytes = static_cast<std::uint32_t>(grid.element_bytes()),
          .codec = codec,
          .shadow = persistent};
}

store::ComponentOptions DiskArray::State::component_options(int component) const {
  return {.read_only = read_only,
          .directory = persistent ? directory.opened().fd() : -1,
          .unlink_after_open = !persistent,
          .keep_space = true,
          .account = account("the table of a disk array"),
          .describe = [layout = grid, component](std::int64_t slot) {
            const std::int64_t chunk = layout.chunk_at(component, slot);
            return "chunk " + std::to_string(chunk) + " " + layout.chunk_box(chunk).text();
          }};
}

store::ChunkCacheOptions DiskArray::State::cache_options(std::size_t components) const {
  constexpr std::int64_t max_bytes = 64 << 20;
  const std::int64_t all =
      caches.cache_bytes >= 0 ? caches.cache_bytes : std::min(world.budget().limit_bytes() / 16, max_bytes);
  return {.max_bytes = all / static_cast<std::int64_t>(components),
          .account = account("the cache of a disk array")};
}

/// Accounts memory to the budget of this process.
std::function<void(std::int64_t bytes)> DiskArray::State::account(std::string_view what) const {
  return [&budget = world.budget(), what](std::int64_t bytes) {
    if (bytes > 0)
      budget.reserve(bytes, what);
    else
      budget.release(-bytes);
  };
}

void DiskArray::State::make_store() {
  store = std::make_shared<dio::ChunkStore>(grid, type, read_only);
}

/// The options of one of the components that this process owns.
void DiskArray::State::add_component(int component, store::Component file, std::size_t components,
                                     store::StateLease lease) {
  store->add(component, std::move(file), cache_options(components), std::move(lease));
}

/// Lets any process request sections from now on. All processes get that far: the collective call that makes
/// the array goes on.
void DiskArray::State::serve() {
  known.push_back(services.chunks.add(id, store));
  client = std::make_shared<dio::ChunkClient>(
      world, services.chunks,
      dio::ChunkLayout{.grid = grid, .type = type, .read_only = read_only, .number = id, .owners = owners},
      store, caches.client_cache_bytes);
}

std::string DiskArray::State::share(World& parent) {
  constexpr std::string_view what = "share disk array";
  std::uint64_t number = 0;
  dio::ChunkService* service = nullptr;
  world.together(what, id, [&] {
    service = &array::ArrayServices::present(parent, what).chunks;
    if (world.rank() == 0) number = service->foreign_number();
  });
  world.transport().broadcast(std::as_writable_bytes(std::span(&number, 1)), 0);
  const std::int32_t mine = parent.rank();
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(world.size()));
  world.transport().all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(ranks)));
  dio::ChunkLayout layout = client->layout();
  layout.number = number;
  for (int& owner : layout.owners) owner = ranks[static_cast<std::size_t>(owner)];
  world.together(what, id, [&] { known.push_back(service->add(number, store)); });
  return layout.encode();
}

void DiskArray::State::create(const Make& make) {
  constexpr std::string_view what = "create disk array";
  DiskArrayOptions options;
  world.enter(what, [&] {
    Extents shape;
    make(shape, type, options);
    codec = options.codec;
    metadata = options.metadata;
    identity = options.identity;
    array::check_identity(identity);
    persistent = !options.path.empty();
    store::check(codec);
    const std::size_t element_bytes = size_bytes(type);
    Extents typical = options.typical;
    if (typical.rank() == 0 && codec.codec != store::Codec::none)  // because their chunks are read as a whole
      typical = Extents::filled(shape.rank(), 1);
    const Extents chunk =
        options.chunk.rank() > 0 ? options.chunk : dio::choose_chunk(shape, element_bytes, typical);
    grid = dio::ChunkGrid(shape, chunk, element_bytes, world.size(), options.group);
    block_bytes = store::suitable_block_bytes(grid.chunk_bytes());
    caches = options.caches;
    const std::string arguments =
        grid.shape().text() + std::string(name(type)) + options.path + grid.chunk().text() +
        store::text(codec) + metadata + std::to_string(static_cast<int>(options.placement)) +
        std::to_string(options.overwrite) + std::to_string(options.expected_bytes) + " " +
        std::to_string(options.group) + " " + std::to_string(options.contained) + options.identity;
    return fingerprint(std::as_bytes(std::span(arguments)));
  });
  id = queue.next_number();
  owners.resize(static_cast<std::size_t>(world.size()));
  std::iota(owners.begin(), owners.end(), 0);
  if (persistent && identity.empty()) identity = new_identity(world);
  if (persistent)
    directory = array::ArrayDirectory::create(world, options.path, options.placement, options.overwrite,
                                              options.contained);
  try {
    world.together(what, 0, [&] {
      make_store();
      const int mine = world.rank();
      const std::string place = persistent ? directory.path() : device::process_directory(world.scratch());
      const std::int64_t whole = geometry(mine).slots * geometry(mine).stride_bytes();
      const std::int64_t expected =
          options.expected_bytes < 0 ? whole : std::min(whole, options.expected_bytes / world.size());
      const Placement placement = persistent ? directory.placement() : Placement::local;
      const std::string path = persistent ? directory.file(directory.component(mine))
                                          : place + "/array." + std::to_string(scratch_number++);
      if (codec.codec == store::Codec::none) {
        check_space(world, place, placement, expected, directory.replaced() > 0);
        check_file_size(what, path, expected);
      }
      if (grid.slots(mine) == 0) return serve();
      add_component(mine, store::Component::create(path, geometry(mine), component_options(mine)), 1);
      serve();
    });
  } catch (const Error&) {  // by all processes
    let_go();
    if (directory.replaced() > 0)
      directory.give_up(world.rank());
    else if (persistent)
      directory.remove(world.transport());
    directory.unlock();
    throw;
  }
  changed = true;
}

void DiskArray::State::load(const MakeOpening& make) {
  DiskArrayOpening opening;
  world.enter("open disk array", [&] {
    opening = make();
    const std::string arguments =
        opening.path + std::to_string(opening.read_only) + std::to_string(opening.contained);
    return fingerprint(std::as_bytes(std::span(arguments)));
  });
  persistent = true;
  read_only = opening.read_only;
  caches = opening.caches;
  std::vector<std::byte> manifest, before;
  for (int attempt = 1;; ++attempt) try {
      before = std::exchange(manifest, {});
      return open_latest(opening.path, opening.contained, manifest);
    } catch (const Error&) {  // at all processes; they have the same manifest
      if (!read_only || manifest.empty()) throw;
      // A state that another job has replaced meanwhile may be gone; else it has not changed.
      if (manifest == before) throw;
      constexpr int max_attempts = 1000, max_pause_ms = 20;
      if (attempt == max_attempts) throw;
      known.clear();
      client.reset();
      store.reset();
      std::this_thread::sleep_for(std::chrono::milliseconds(std::min(attempt, max_pause_ms)));
    }
}

void DiskArray::State::open_latest(const std::string& path, int contained, std::vector<std::byte>& bytes) {
  constexpr std::string_view what = "open disk array";
  directory = array::ArrayDirectory::open(world, path, read_only, contained, bytes);
  array::Manifest manifest;
  world.together(what, 0, [&] {
    manifest = array::Manifest::decode(bytes, directory.path());
    type = manifest.type;
    codec = manifest.codec;
    metadata.assign(reinterpret_cast<const char*>(manifest.user.data()), manifest.user.size());
    identity = manifest.identity;
    generation = manifest.generation;
    grid = manifest.grid();
    block_bytes = manifest.block_bytes;
  });
  id = queue.next_number();
  const std::vector<int> mine = directory.share(world, grid);
  owners = owners_of_all(world, mine, grid.components());
  world.together(what, 0, [&] {
    make_store();
    open_components(manifest, mine);
    if (!read_only) keep_states_read();
    serve();
  });
}

void DiskArray::State::open_components(const array::Manifest& manifest, std::span<const int> mine) {
  for (const int c : mine) {
    if (grid.slots(c) == 0) continue;
    store::StateLease lease;
    if (read_only) lease = store::StateLease(directory.opened(), store::table_name(c, generation));
    store::SlotTable slots = array::read_table(manifest, c, directory.opened());
    store::Component file = store::Component::open(directory.file(directory.component(c)), std::move(slots),
                                                   component_options(c));
    if (read_only) lease.check(directory.opened());  // then this is its file
    add_component(c, std::move(file), mine.size(), std::move(lease));
  }
}

/// The states that other jobs have committed or tried to. Everything else that they have left is removed.
void DiskArray::State::keep_states_read() {
  const auto tables = store::tables_in(directory.opened());
  for (const dio::OwnedComponent& each : components()) {
    for (const auto& [component, other] : tables) {
      if (component != each.index || other == generation) continue;
      const std::string name = store::table_name(component, other), table = directory.file(name);
      const std::int64_t max_bytes = store::SlotTable::max_bytes(each.file->geometry());
      if (store::is_read(directory.opened(), name))
        each.file->keep(other,
                        store::SlotTable::decode(
                            store::read_whole(table, max_bytes, nullptr, directory.opened().fd()), table));
    }
    each.file->release_unused();
  }
}

void DiskArray::State::commit(const TransferQueue::Context& context, const std::string& new_metadata) {
  constexpr std::string_view what = "commit disk array";
  transport::Transport& group = context.transport;
  changed = persistent;  // until it has succeeded: the stores reset their flags before that
  const std::uint64_t next = std::max(generation, directory.replaced()) + 1;
  const auto count = static_cast<std::size_t>(grid.components());
  std::vector<std::int64_t> facts(2 * count);  // size and checksum of each table, from its owner
  const Box all = Box::whole(grid.shape());
  std::optional<dio::ChunkStore::Pause> pause;  // until all is committed
  world::agree(group, what, [&] {
    pause.emplace(*store, std::span(&all, 1), false);
    store->deal_with_changes();
    std::vector<device::File> tables;
    std::vector<std::function<void()>> syncs;
    for (const dio::OwnedComponent& each : components()) {
      syncs.emplace_back([&each] { each.file->flush(); });
      if (!persistent) continue;
      const std::vector<std::byte> table = each.file->encode_table();
      tables.push_back(store::write_unsynced(directory.file(store::table_name(each.index, next)), table,
                                             nullptr, directory.opened().fd()));
      const auto c = static_cast<std::size_t>(each.index);
      facts[2 * c] = static_cast<std::int64_t>(table.size());
      facts[2 * c + 1] = store::crc32c(table);
    }
    for (device::File& table : tables) syncs.emplace_back([&table] { table.flush(); });
    if (persistent)
      for (auto& each : directory.syncs(!tables.empty())) syncs.push_back(std::move(each));
    store::sync_together(syncs);
  });
  if (!persistent) {
    metadata = new_metadata;
    return;
  }
  group.all_reduce(std::span(facts), transport::Reduction::sum);
  const auto* text = reinterpret_cast<const std::byte*>(new_metadata.data());
  array::Manifest manifest{.shape = grid.shape(),
                           .chunk = grid.chunk(),
                           .type = type,
                           .block_bytes = block_bytes,
                           .group = grid.group(),
                           .codec = codec,
                           .shared = directory.placement() == Placement::shared,
                           .generation = next,
                           .identity = identity,
                           .components = {},
                           .user = {text, text + new_metadata.size()}};
  for (std::size_t c = 0; c < count; ++c)
    manifest.components.push_back({directory.component(static_cast<int>(c)),
                                   store::table_name(static_cast<int>(c), next), facts[2 * c],
                                   static_cast<std::uint32_t>(facts[2 * c + 1])});
  try {
    directory.commit(group, manifest.encode());
  } catch (const Error&) {  // by all processes
    if (directory.uncertain()) store->freeze();
    throw;
  }
  const std::uint64_t before = std::exchange(generation, next);
  metadata = new_metadata;
  changed = false;
  world::agree(group, what, [&] {
    // All components first: one whose table did not know of the commit would overwrite it.
    std::exception_ptr failure;
    for (const dio::OwnedComponent& each : components()) try {
        each.file->committed(before, [&](std::uint64_t state) {
          try {
            return store::is_read(directory.opened(), store::table_name(each.index, state));
          } catch (const Error&) {  // then the state must stay
            failure = std::current_exception();
            return true;
          }
        });
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    if (failure) std::rethrow_exception(failure);
  });
}

}  // namespace outcore
