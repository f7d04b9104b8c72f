#include "array/array_directory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <system_error>

#include "outcore/error.hpp"
#include "outcore/store/checksum.hpp"
#include "outcore/store/durable.hpp"
#include "store/visibility.hpp"
#include "world/gate.hpp"

namespace fs = std::filesystem;

namespace outcore::array {
namespace {

constexpr std::string_view manifest_name = "manifest", next_name = "manifest.next";

std::string on_this_node(std::string path, const World& world) {
  constexpr std::string_view mark = "{node}";
  for (std::size_t at; (at = path.find(mark)) != std::string::npos;)
    path.replace(at, mark.size(), std::to_string(world.node()));
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

[[noreturn]] void fail(int errno_value, std::string_view attempted, const std::string& path,
                       std::string detail = {}) {
  throw Error(errno_value, {.attempted = std::string(attempted), .path = path, .detail = std::move(detail)});
}

bool is_ours(const std::string& name) {
  return name == manifest_name || name == next_name || name.starts_with(store::Visibility::mark_name) ||
         name.starts_with("component.") || name.starts_with("table.");
}

/// Deletes an array: first what makes it one, so that half of an array is none.
void delete_array(const std::string& path) {
  fs::remove(path + "/" + std::string(manifest_name));
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path))
    if (is_ours(entry.path().filename())) files.push_back(entry.path());
  for (const fs::path& file : files) fs::remove(file);
  fs::remove(path);
}

void refuse_foreign(const std::string& path) {
  for (const fs::directory_entry& entry : fs::directory_iterator(path))
    if (const std::string name = entry.path().filename(); !is_ours(name))
      fail(EEXIST, "create disk array", path, "it holds '" + name + "', which belongs to no array");
}

/// Returns whether it made it; else it was there, and empty.
bool make_directory(const std::string& path, bool overwrite) {
  if (::mkdir(path.c_str(), 0777) == 0) return true;
  if (errno != EEXIST || !fs::is_directory(path)) fail(errno, "create disk array", path);
  const bool committed = fs::exists(path + "/" + std::string(manifest_name));
  if (!overwrite && (committed || !fs::is_empty(path)))
    fail(EEXIST, "create disk array", path,
         committed ? "there is an array; say overwrite to replace it" : "the directory is not empty");
  refuse_foreign(path);
  if (fs::is_empty(path)) return false;
  delete_array(path);
  if (::mkdir(path.c_str(), 0777) != 0) fail(errno, "create disk array", path);
  return true;
}

/// Filesystem errors carry no word of ours.
template <class Step>
void translated(std::string_view attempted, const std::string& path, Step step) {
  try {
    step();
  } catch (const fs::filesystem_error& error) {
    fail(error.code().value(), attempted, path);
  }
}

std::vector<std::byte> read_manifest(const std::string& file) {
  return store::read_whole(file, store::Manifest::most_bytes);
}

std::uint64_t generation_in(const std::string& file) {
  try {
    return store::Manifest::decode(read_manifest(file), file).generation;
  } catch (const Error& error) {
    if (error.errno_value() == ENOENT || error.errno_value() == ENOTDIR) return 0;
    throw;
  }
}

}  // namespace

std::string component_name(int component) {
  return "component." + std::to_string(component);
}

std::string table_name(int component, std::uint64_t generation) {
  return "table." + std::to_string(component) + "." + std::to_string(generation);
}

store::SlotTable read_table(const store::Manifest& manifest, int component, const std::string& directory) {
  const store::Manifest::Component& expected = manifest.components[static_cast<std::size_t>(component)];
  const std::string file = directory + "/" + expected.table_name;
  const std::vector<std::byte> bytes = store::read_whole(file, expected.table_bytes + 1);
  if (static_cast<std::int64_t>(bytes.size()) != expected.table_bytes ||
      store::crc32c(bytes) != expected.table_crc)
    fail(EIO, "open disk array", file,
         "it is not the table that the manifest names: damaged, or of another state");
  store::SlotTable table = store::SlotTable::decode(bytes, file);
  if (table.geometry() != manifest.geometry(component))
    fail(EIO, "open disk array", file, "it describes slots of another size than the manifest");
  return table;
}

ArrayDirectory ArrayDirectory::create(World& world, const std::string& path, Placement placement,
                                      bool overwrite) {
  ArrayDirectory made;
  made.path_ = on_this_node(path, world);
  bool is_new = false;
  try {
    made.make(world, placement, overwrite, is_new);
  } catch (const Error&) {  // by all processes
    if (is_new) try {
        delete_array(made.path_);
      } catch (const fs::filesystem_error&) {  // the other failure is the one to tell of
      }
    throw;
  }
  return made;
}

void ArrayDirectory::make(World& world, Placement placement, bool overwrite, bool& is_new) {
  constexpr std::string_view what = "create disk array";
  store::Visibility seen;
  world.together(what, 0, [&] {
    if (world.rank() != 0) return;
    translated(what, path_, [&] { is_new = make_directory(path_, overwrite); });
    seen.leave_mark(path_);
  });
  seen.look(world, path_);
  placement_ = seen.resolved(placement);
  leads_ = world.rank() == 0 || (placement_ == Placement::local && world.node_rank() == 0);
  fresh_ = leads_;
  world.together(what, 0, [&] {
    if (placement_ == Placement::shared && !seen.by_me())
      fail(ENOENT, what, path_, "placement is shared, but this process does not see what the first one made");
    if (world.rank() == 0)
      seen.remove_mark();
    else if (leads_ && !seen.by_me())
      translated(what, path_, [&] { is_new = make_directory(path_, overwrite); });
  });
}

ArrayDirectory ArrayDirectory::open(World& world, const std::string& path, std::vector<std::byte>& manifest) {
  constexpr std::string_view what = "open disk array";
  ArrayDirectory found;
  found.path_ = on_this_node(path, world);
  const std::string last = found.file(std::string(manifest_name)), next = found.file(std::string(next_name));
  // The newest state that any node has committed is safe on all.
  const bool looks = world.node_rank() == 0;
  std::int64_t generation = 0;
  world.together(what, 0, [&] {
    if (looks) generation = static_cast<std::int64_t>(generation_in(last));
  });
  const bool has_manifest = generation > 0;
  world.transport().all_reduce(std::span(&generation, 1), transport::Reduction::max);
  world.together(what, 0, [&] {
    if (generation == 0) {
      if (!fs::exists(found.path_)) fail(ENOENT, what, found.path_);
      fail(ENOENT, what, found.path_,
           fs::is_directory(found.path_)
               ? "there is no manifest: not an array, or one that was never committed"
               : "not a directory");
    }
    if (!looks || !fs::is_directory(found.path_)) return;  // or a node without a part of the array
    const auto wanted = static_cast<std::uint64_t>(generation);
    if (has_manifest && generation_in(last) == wanted)
      manifest = read_manifest(last);
    else if (generation_in(next) == wanted)
      manifest = read_manifest(next);
  });
  // Nodes that have no part of it learn from one that has.
  std::int64_t source = manifest.empty() ? std::numeric_limits<std::int64_t>::max() : world.rank();
  world.transport().all_reduce(std::span(&source, 1), transport::Reduction::min);
  auto size = static_cast<std::int64_t>(manifest.size());
  world.transport().broadcast(std::as_writable_bytes(std::span(&size, 1)), static_cast<int>(source));
  manifest.resize(static_cast<std::size_t>(size));
  world.transport().broadcast(manifest, static_cast<int>(source));
  const std::string& place = found.path_;
  world.together(what, 0, [&] {
    found.placement_ = store::Manifest::decode(manifest, place).shared ? Placement::shared : Placement::local;
  });
  found.leads_ = world.rank() == 0 || (found.placement_ == Placement::local && world.node_rank() == 0);
  return found;
}

std::vector<int> ArrayDirectory::share(World& world, int components) const {
  std::vector<int> mine;
  if (placement_ == Placement::shared) {
    for (int c = world.rank(); c < components; c += world.size()) mine.push_back(c);
    return mine;
  }
  constexpr std::int64_t nowhere = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> node(static_cast<std::size_t>(components), nowhere);
  for (int c = 0; c < components; ++c)
    if (::access(file(component_name(c)).c_str(), F_OK) == 0)
      node[static_cast<std::size_t>(c)] = world.node();
  world.transport().all_reduce(std::span(node), transport::Reduction::min);
  int turn = 0;
  for (int c = 0; c < components; ++c) {
    if (node[static_cast<std::size_t>(c)] == nowhere)
      fail(ENOENT, "open disk array", file(component_name(c)),
           "no node of this job has this part of the array");
    if (node[static_cast<std::size_t>(c)] == world.node() && turn++ % world.node_size() == world.node_rank())
      mine.push_back(c);
  }
  return mine;
}

void ArrayDirectory::commit(transport::Transport& group, std::span<const std::byte> manifest) {
  constexpr std::string_view what = "commit disk array";
  const std::string last = file(std::string(manifest_name)), next = file(std::string(next_name));
  fresh_ = false;  // see syncs
  if (placement_ == Placement::shared)
    return world::agree(group, what, [&] {
      if (leads_) store::write_durably(last, manifest);
    });
  world::agree(group, what, [&] {
    if (leads_) store::write_durably(next, manifest);
  });
  world::agree(group, what, [&] {
    if (!leads_) return;
    if (::rename(next.c_str(), last.c_str()) != 0) fail(errno, what, last);
    store::sync_directory(path_);
  });
}

std::vector<std::function<void()>> ArrayDirectory::syncs(bool has_tables) const {
  std::vector<std::function<void()>> all;
  if (has_tables) all.emplace_back([this] { store::sync_directory(path_); });
  if (fresh_)
    all.emplace_back([this] {
      const fs::path parent = fs::path(path_).parent_path();
      store::sync_directory(parent.empty() ? "." : parent);
    });
  return all;
}

void ArrayDirectory::remove_tables_but(std::uint64_t generation) const {
  if (!leads_) return;
  const std::string present = "." + std::to_string(generation);
  std::vector<fs::path> stale;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_))
    if (const std::string name = entry.path().filename();
        name.starts_with("table.") && !name.ends_with(present))
      stale.push_back(entry.path());
  for (const fs::path& each : stale) fs::remove(each);
}

void ArrayDirectory::remove(transport::Transport& group) const {
  world::agree(group, "remove disk array", [&] {
    if (leads_ && fs::exists(path_)) translated("remove disk array", path_, [&] { delete_array(path_); });
  });
}

}  // namespace outcore::array
