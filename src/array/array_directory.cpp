#include "array/array_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
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
  std::string_view written = name;
  if (written.ends_with(".new")) written.remove_suffix(4);
  return written == manifest_name || written == next_name || name.starts_with(store::Visibility::mark_name) ||
         name.starts_with("component.") || name.starts_with("table.");
}

/// Deletes the files of an array, of which there is no manifest any more.
void delete_files(const std::string& path) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path))
    if (is_ours(entry.path().filename())) files.push_back(entry.path());
  for (const fs::path& file : files) fs::remove(file);
}

void refuse_foreign(const std::string& path) {
  for (const fs::directory_entry& entry : fs::directory_iterator(path))
    if (const std::string name = entry.path().filename(); !is_ours(name))
      fail(EEXIST, "create disk array", path, "it holds '" + name + "', which belongs to no array");
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

/// A manifest as it lies in a file, if there is one.
struct Found {
  std::vector<std::byte> bytes;
  std::uint64_t generation = 0;  ///< 0: there is none
};

Found find_manifest(const std::string& file) {
  try {
    std::vector<std::byte> bytes = store::read_whole(file, store::Manifest::most_bytes);
    const std::uint64_t generation = store::Manifest::decode(bytes, file).generation;
    return {std::move(bytes), generation};
  } catch (const Error& error) {
    if (error.errno_value() == ENOENT || error.errno_value() == ENOTDIR) return {};
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
  try {
    made.make(world, placement, overwrite);
  } catch (const Error&) {  // by all processes
    if (made.is_new_) try {
        delete_files(made.path_);
        fs::remove(made.path_);
      } catch (const fs::filesystem_error&) {  // the other failure is the one to tell of
      }
    throw;
  }
  return made;
}

/// What may fail for others that are at it comes before anything is touched.
void ArrayDirectory::make_directory(bool overwrite) {
  constexpr std::string_view what = "create disk array";
  const bool made = ::mkdir(path_.c_str(), 0777) == 0;
  if (!made && (errno != EEXIST || !fs::is_directory(path_))) fail(errno, what, path_);
  lock(what);
  is_new_ = made;
  const bool committed = fs::exists(file(std::string(manifest_name)));
  if (!overwrite && (committed || !fs::is_empty(path_)))
    fail(EEXIST, what, path_,
         committed ? "there is an array; say overwrite to replace it" : "the directory is not empty");
  refuse_foreign(path_);
  delete_manifest();
}

/// First what makes it an array, and for good: of half of an array no manifest may be found later.
void ArrayDirectory::delete_manifest() const {
  if (fs::remove(file(std::string(manifest_name)))) store::sync_directory(path_);
}

void ArrayDirectory::lock(std::string_view what) {
  device::Descriptor directory(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) fail(errno, what, path_);
  const int refused = ::flock(directory.get(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  // A file system that has no locks cannot help: then it is on the user.
  const bool has_none = refused == ENOLCK || refused == EOPNOTSUPP || refused == ENOSYS || refused == EINVAL;
  if (refused != 0 && refused != EWOULDBLOCK && !has_none) fail(refused, what, path_);
  struct stat mine{}, there{};
  const bool same = ::fstat(directory.get(), &mine) == 0 && ::stat(path_.c_str(), &there) == 0 &&
                    mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
  if (refused == EWOULDBLOCK || !same)
    fail(EBUSY, what, path_,
         "somebody else, or another handle of this job, is writing, making or deleting it");
  lock_ = std::move(directory);
}

/// Who makes, locks and commits a directory: of each one process.
bool ArrayDirectory::leads(const World& world, Placement placement, const store::Visibility& seen) {
  return world.rank() == 0 || (placement == Placement::local && world.node_rank() == 0 && !seen.by_me());
}

void ArrayDirectory::make(World& world, Placement placement, bool overwrite) {
  constexpr std::string_view what = "create disk array";
  store::Visibility seen;
  world.together(what, 0, [&] {
    if (world.rank() != 0) return;
    translated(what, path_, [&] { make_directory(overwrite); });
    seen.leave_mark(path_);
  });
  seen.look(world, path_);
  placement_ = seen.resolved(placement);
  leads_ = leads(world, placement_, seen);
  fresh_ = leads_;
  world.together(what, 0, [&] {
    if (placement_ == Placement::shared && !seen.by_me())
      fail(ENOENT, what, path_, "placement is shared, but this process does not see what the first one made");
    if (world.rank() == 0)
      seen.remove_mark();
    else if (leads_)
      translated(what, path_, [&] { make_directory(overwrite); });
  });
  world.together(what, 0, [&] {  // there is no manifest on any node
    if (leads_) translated(what, path_, [&] { delete_files(path_); });
  });
}

ArrayDirectory ArrayDirectory::open(World& world, const std::string& path, bool read_only,
                                    std::vector<std::byte>& manifest) {
  constexpr std::string_view what = "open disk array";
  ArrayDirectory found;
  found.path_ = on_this_node(path, world);
  const std::string last = found.file(std::string(manifest_name)), next = found.file(std::string(next_name));
  // The newest state that any node has committed is safe on all. Others may be committing: each file is read
  // once.
  const bool looks = world.node_rank() == 0;
  Found committed, prepared;
  world.together(what, 0, [&] {
    if (!looks) return;
    committed = find_manifest(last);
    prepared = find_manifest(next);
  });
  auto generation = static_cast<std::int64_t>(committed.generation);
  world.transport().all_reduce(std::span(&generation, 1), transport::Reduction::max);
  const auto wanted = static_cast<std::uint64_t>(generation);
  world.together(what, 0, [&] {
    if (generation > 0) return;
    if (!fs::exists(found.path_)) fail(ENOENT, what, found.path_);
    fail(ENOENT, what, found.path_,
         fs::is_directory(found.path_) ? "there is no manifest: not an array, or one that was never committed"
                                       : "not a directory");
  });
  if (committed.generation == wanted)
    manifest = committed.bytes;
  else if (prepared.generation == wanted)
    manifest = prepared.bytes;
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
  if (read_only) return found;
  store::Visibility seen;
  if (found.placement_ == Placement::local) {
    world.together(what, 0, [&] {
      if (world.rank() == 0 && fs::is_directory(place)) seen.leave_mark(place);
    });
    seen.look(world, place);
  }
  found.leads_ = leads(world, found.placement_, seen);
  world.together(what, 0, [&] {
    if (world.rank() == 0 && found.placement_ == Placement::local) seen.remove_mark();
    if (!found.leads_ || !fs::is_directory(place)) return;
    found.lock(what);
    const std::uint64_t here = find_manifest(last).generation;
    if (here > wanted) fail(EBUSY, what, place, "somebody else has written it just now");
    // What another node has committed is so here, too, before its predecessor goes; and the job that has
    // committed it may have been killed before it was durable.
    if (here < wanted && find_manifest(next).generation == wanted)
      store::rename_durably(next, last);
    else
      store::sync_directory(place);
  });
  return found;
}

std::vector<int> ArrayDirectory::share(World& world, const ChunkGrid& grid) const {
  const int components = grid.components();
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
    if (grid.slots(c) == 0) {  // there is no file
      if (world.rank() == 0) mine.push_back(c);
      continue;
    }
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
  bool replaced = false;
  try {
    world::agree(group, what, [&] {
      if (leads_ && placement_ == Placement::shared) store::write_durably(last, manifest, nullptr, &replaced);
      if (leads_ && placement_ == Placement::local) store::write_durably(next, manifest);
    });
    if (placement_ == Placement::shared) return;
    world::agree(group, what, [&] {
      if (leads_) store::rename_durably(next, last, &replaced);
    });
  } catch (const Error&) {  // by all processes
    std::int64_t any = replaced ? 1 : 0;
    group.all_reduce(std::span(&any, 1), transport::Reduction::max);
    uncertain_ = any != 0;
    throw;
  }
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

void ArrayDirectory::remove(transport::Transport& group) const {
  constexpr std::string_view what = "remove disk array";
  world::agree(group, what, [&] {
    if (leads_ && fs::exists(path_)) translated(what, path_, [&] { delete_manifest(); });
  });
  world::agree(group, what, [&] {
    if (leads_ && fs::exists(path_))
      translated(what, path_, [&] {
        delete_files(path_);
        fs::remove(path_);
      });
  });
}

}  // namespace outcore::array
