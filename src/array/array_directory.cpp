#include "array/array_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "base/uninterrupted.hpp"
#include "dio/visibility.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"
#include "store/checksum.hpp"
#include "store/durable.hpp"
#include "store/state_lease.hpp"
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

/// Whether it is `stem` and then `count` numbers, each after a dot.
bool is_numbered(std::string_view name, std::string_view stem, int count) {
  if (!name.starts_with(stem)) return false;
  name.remove_prefix(stem.size());
  for (; count > 0; --count) {
    if (!name.starts_with('.')) return false;
    name.remove_prefix(1);
    const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    if (digits == 0) return false;
    name.remove_prefix(digits);
  }
  return name.empty();
}

bool is_ours(std::string_view name) {
  std::string_view written = name;
  if (written.ends_with(".new")) written.remove_suffix(4);
  return written == manifest_name || written == next_name ||
         is_numbered(name, dio::Visibility::mark_name, 1) || is_numbered(name, "component", 1) ||
         is_numbered(name, "component", 2) || is_numbered(name, "table", 2);
}

/// The number behind the last dot of a name that is_numbered.
std::uint64_t last_number(const std::string& name) {
  return std::strtoull(name.c_str() + name.rfind('.') + 1, nullptr, 10);
}

/// Deletes the files of an array whose manifest was deleted.
void delete_files(const device::Directory& directory) {
  for (const std::string& name : directory.names())
    if (is_ours(name)) directory.remove(name);
}

void refuse_foreign(const device::Directory& directory) {
  for (const std::string& name : directory.names())
    if (!is_ours(name) || directory.is_directory(name))
      fail(EEXIST, "create disk array", directory.path(),
           "it holds '" + name + "', which belongs to no array");
}

/// Turns errors of std::filesystem, which lack our context, into Error.
template <class Step>
void translated(std::string_view attempted, const std::string& path, Step step) {
  try {
    step();
  } catch (const fs::filesystem_error& error) {
    fail(error.code().value(), attempted, path);
  }
}

/// A manifest as read from its file, if there is one.
struct Found {
  std::vector<std::byte> bytes;
  std::uint64_t generation = 0;  ///< 0: there is none
  std::string identity = {};     ///< of the array
};

Found find_manifest(const device::Directory& directory) {
  if (!directory) return {};
  const std::string file = directory.path() + "/" + std::string(manifest_name);
  try {
    std::vector<std::byte> bytes = store::read_whole(file, Manifest::max_bytes, nullptr, directory.fd());
    Manifest manifest = Manifest::decode(bytes, file);
    return {std::move(bytes), manifest.generation, std::move(manifest.identity)};
  } catch (const Error& error) {
    if (error.errno_value() == ENOENT) return {};
    throw;
  }
}

}  // namespace

std::string component_name(int component, std::uint64_t replaced) {
  return "component." + std::to_string(component) + (replaced > 0 ? "." + std::to_string(replaced) : "");
}

std::uint64_t replaced_by(const Manifest& manifest) {
  const std::string& name = manifest.components.front().data_name;
  return is_numbered(name, "component", 2) ? last_number(name) : 0;
}

store::SlotTable read_table(const Manifest& manifest, int component, const device::Directory& directory) {
  const Manifest::Component& expected = manifest.components[static_cast<std::size_t>(component)];
  const std::string file = directory.path() + "/" + expected.table_name;
  // The largest table that such a component can have, so that a damaged size does not allocate memory.
  const store::Geometry geometry = manifest.geometry(component);
  const std::vector<std::byte> bytes =
      store::read_whole(file, store::SlotTable::max_bytes(geometry), nullptr, directory.fd());
  if (static_cast<std::int64_t>(bytes.size()) != expected.table_bytes ||
      store::crc32c(bytes) != expected.table_crc)
    fail(EIO, "open disk array", file,
         "it is not the table that the manifest names: damaged, or of another state");
  store::SlotTable table = store::SlotTable::decode(bytes, file);
  if (table.geometry() != geometry)
    fail(EIO, "open disk array", file, "it describes slots of another size than the manifest");
  return table;
}

void check_names(const Manifest& manifest, const std::string& path) {
  const std::uint64_t replaced = replaced_by(manifest);
  for (int c = 0; c < static_cast<int>(manifest.components.size()); ++c) {
    const Manifest::Component& each = manifest.components[static_cast<std::size_t>(c)];
    if (replaced < manifest.generation && each.data_name == component_name(c, replaced) &&
        each.table_name == store::table_name(c, manifest.generation))
      continue;
    fail(EIO, "open disk array", path,
         "its manifest is damaged or written wrongly: component " + std::to_string(c) + " is in '" +
             each.data_name + "' and '" + each.table_name + "'");
  }
}

ArrayDirectory ArrayDirectory::create(World& world, const std::string& path, Placement placement,
                                      bool overwrite, int contained) {
  ArrayDirectory made;
  made.path_ = on_this_node(path, world);
  made.contained_ = contained;
  try {
    made.make(world, placement, overwrite);
  } catch (const Error&) {  // by all processes
    if (made.is_new_) try {
        if (made.opened_) delete_files(made.opened_);
        ::rmdir(made.path_.c_str());
      } catch (const Error&) {  // the other failure is reported
      }
    throw;
  }
  return made;
}

/// Steps that may fail because others use the array come before any change.
void ArrayDirectory::make_directory(bool overwrite) {
  constexpr std::string_view what = "create disk array";
  const bool made = device::Directory::make(path_, contained_);
  opened_ = device::Directory(path_, contained_);
  lock(what);
  is_new_ = made;
  const bool committed = opened_.holds(std::string(manifest_name));
  if (!overwrite && (committed || !opened_.names().empty()))
    fail(EEXIST, what, path_,
         committed ? "there is an array; say overwrite to replace it" : "the directory is not empty");
  refuse_foreign(opened_);
  if (made) return;
  try {
    replaced_ = find_manifest(opened_).generation;
  } catch (const Error& error) {
    constexpr std::array damaged{EINVAL, EIO, EFBIG, ENOTSUP};  // or of another version: nothing to keep
    if (std::ranges::find(damaged, error.errno_value()) == damaged.end()) throw;
  }
}

/// Deletes the files of an array that this one has replaced, and files that were never committed. Files that
/// cannot be deleted now are deleted later.
void ArrayDirectory::delete_others() const {
  for (const std::string& name : opened_.names()) {
    const bool is_data = is_numbered(name, "component", 1) || is_numbered(name, "component", 2);
    const std::uint64_t of = is_numbered(name, "component", 2) ? last_number(name) : 0;
    const bool goes =
        is_data ? of != replaced_ : is_numbered(name, "table", 2) && last_number(name) <= replaced_;
    if (goes) try {
        opened_.remove(name);
      } catch (const Error&) {
      }
  }
}

void ArrayDirectory::give_up(int number) const noexcept {
  try {
    opened_.remove(component(number));
  } catch (const Error&) {  // it is deleted when the array is replaced or opened to write
  }
}

/// Deletes the manifests first, and durably: no manifest may be found later beside half of an array. If
/// another job has deleted a manifest before it was killed, that may not be on stable storage yet.
void ArrayDirectory::delete_manifest() const {
  opened_.remove(std::string(manifest_name));
  store::sync_directory(path_, opened_.fd());
}

void ArrayDirectory::lock(std::string_view what) {
  device::Descriptor directory = device::open_at(opened_.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (!directory) fail(errno, what, path_);
  const int refused =
      uninterrupted([&] { return ::flock(directory.get(), LOCK_EX | LOCK_NB); }) == 0 ? 0 : errno;
  // A file system without locks cannot exclude other writers: then the user must.
  const bool has_none = refused == ENOLCK || refused == EOPNOTSUPP || refused == ENOSYS || refused == EINVAL;
  if (refused != 0 && refused != EWOULDBLOCK && !has_none) fail(refused, what, path_);
  struct stat mine{}, there{};
  const bool same = ::fstat(directory.get(), &mine) == 0 && ::stat(path_.c_str(), &there) == 0 &&
                    mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
  if (refused == EWOULDBLOCK || !same)
    fail(EBUSY, what, path_,
         "somebody else, or another handle of this job, is writing, making or deleting it");
  lock_ = device::HeldLock(std::move(directory));
}

void ArrayDirectory::look_for() {
  try {
    opened_ = device::Directory(path_, contained_);
  } catch (const Error& error) {
    if (error.errno_value() != ENOENT && error.errno_value() != ENOTDIR) throw;
  }
}

/// The process that makes, locks and commits a directory: one for each directory.
bool ArrayDirectory::leads(const World& world, Placement placement, const dio::Visibility& seen) {
  return world.rank() == 0 || (placement == Placement::local && world.node_rank() == 0 && !seen.by_me());
}

void ArrayDirectory::make(World& world, Placement placement, bool overwrite) {
  constexpr std::string_view what = "create disk array";
  dio::Visibility seen;
  world.together(what, 0, [&] {
    if (world.rank() != 0) return;
    make_directory(overwrite);
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
      make_directory(overwrite);
  });
  world.together(what, 0, [&] {
    if (!opened_) opened_ = device::Directory(path_, contained_);
  });
  auto replaced = static_cast<std::int64_t>(replaced_);
  world.transport().all_reduce(std::span(&replaced, 1), transport::Reduction::max);
  replaced_ = static_cast<std::uint64_t>(replaced);
  replaces_ = replaced_ > 0;
  world.together(what, 0, [&] {
    if (leads_ && !replaces_ && !is_new_) delete_manifest();  // one that cannot be opened
  });
  world.together(what, 0, [&] {
    if (!leads_) return;
    if (!replaces_) return delete_files(opened_);  // there is no manifest on any node
    // Files of jobs that were killed before they had committed the array, or had replaced it.
    for (const std::string& name : opened_.names())
      if ((is_numbered(name, "table", 2) && last_number(name) > replaced_) ||
          (is_numbered(name, "component", 2) && last_number(name) >= replaced_))
        opened_.remove(name);
  });
}

ArrayDirectory ArrayDirectory::open(World& world, const std::string& path, bool read_only, int contained,
                                    std::vector<std::byte>& manifest) {
  constexpr std::string_view what = "open disk array";
  ArrayDirectory found;
  found.path_ = on_this_node(path, world);
  found.contained_ = contained;
  // The newest state that any node has committed is durable on all nodes. Another job may commit meanwhile,
  // so each file is read once.
  const bool looks = world.node_rank() == 0;
  Found committed;
  world.together(what, 0, [&] {
    found.look_for();
    if (looks) committed = find_manifest(found.opened_);
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
  if (committed.generation == wanted) manifest = committed.bytes;
  // The other processes get it from one that has it.
  std::int64_t source = manifest.empty() ? std::numeric_limits<std::int64_t>::max() : world.rank();
  world.transport().all_reduce(std::span(&source, 1), transport::Reduction::min);
  auto size = static_cast<std::int64_t>(manifest.size());
  world.transport().broadcast(std::as_writable_bytes(std::span(&size, 1)), static_cast<int>(source));
  manifest.resize(static_cast<std::size_t>(size));
  world.transport().broadcast(manifest, static_cast<int>(source));
  const std::string& place = found.path_;
  std::string identity;
  world.together(what, 0, [&] {
    const Manifest decoded = Manifest::decode(manifest, place);
    check_names(decoded, place);
    identity = decoded.identity;
    found.replaced_ = replaced_by(decoded);
    found.placement_ = decoded.shared ? Placement::shared : Placement::local;
  });
  if (read_only) return found;
  dio::Visibility seen;
  if (found.placement_ == Placement::local) {
    world.together(what, 0, [&] {
      if (world.rank() == 0 && found.opened_) seen.leave_mark(place);
    });
    seen.look(world, place);
  }
  found.leads_ = leads(world, found.placement_, seen);
  world.together(what, 0, [&] {
    if (world.rank() == 0 && found.placement_ == Placement::local) seen.remove_mark();
    if (!found.leads_ || !found.opened_) return;
    found.lock(what);
    const Found here = find_manifest(found.opened_);
    if (here.generation > wanted) fail(EBUSY, what, place, "somebody else has written it just now");
    if (here.generation > found.replaced_ && here.identity != identity)
      fail(EEXIST, what, place, "on this node another array lies there, which the next commit would replace");
    // A state that another node has committed is committed here, too, before its predecessor is deleted; the
    // job that committed it may have been killed before it was durable here.
    if (here.generation > 0 && here.generation < wanted) {
      found.opened_.remove(std::string(next_name));
      store::write_durably(found.file(std::string(manifest_name)), manifest, nullptr, nullptr,
                           found.opened_.fd());
    } else {
      store::sync_directory(place, found.opened_.fd());
    }
    found.delete_others();
  });
  return found;
}

std::vector<int> ArrayDirectory::share(World& world, const dio::ChunkGrid& grid) const {
  const int components = grid.components();
  std::vector<int> mine;
  if (placement_ == Placement::shared) {
    for (int c = world.rank(); c < components; c += world.size()) mine.push_back(c);
    return mine;
  }
  constexpr std::int64_t nowhere = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> node(static_cast<std::size_t>(components), nowhere);
  for (int c = 0; c < components; ++c)
    if (opened_ && opened_.holds(component(c))) node[static_cast<std::size_t>(c)] = world.node();
  world.transport().all_reduce(std::span(node), transport::Reduction::min);
  int turn = 0;
  for (int c = 0; c < components; ++c) {
    if (grid.slots(c) == 0) {  // there is no file
      if (world.rank() == 0) mine.push_back(c);
      continue;
    }
    if (node[static_cast<std::size_t>(c)] == nowhere)
      fail(ENOENT, "open disk array", file(component(c)), "no node of this job has this part of the array");
    if (node[static_cast<std::size_t>(c)] == world.node() && turn++ % world.node_size() == world.node_rank())
      mine.push_back(c);
  }
  return mine;
}

void ArrayDirectory::commit(transport::Transport& group, std::span<const std::byte> manifest) {
  constexpr std::string_view what = "commit disk array";
  const std::string last = file(std::string(manifest_name)), next = file(std::string(next_name));
  fresh_ = false;  // see syncs
  const bool replaces = std::exchange(replaces_, false);
  bool replaced = false;
  try {
    world::agree(group, what, [&] {
      if (leads_) store::write_unsynced(next, manifest, nullptr, opened_.fd()).flush();
    });
    world::agree(group, what, [&] {
      if (leads_) store::rename_durably(next, last, &replaced, opened_.fd());
    });
    if (leads_ && replaces) delete_others();
  } catch (const Error&) {  // by all processes
    std::int64_t any = replaced ? 1 : 0;
    group.all_reduce(std::span(&any, 1), transport::Reduction::max);
    uncertain_ = any != 0;
    replaces_ = replaces;
    throw;
  }
}

std::vector<std::function<void()>> ArrayDirectory::syncs(bool has_tables) const {
  std::vector<std::function<void()>> all;
  if (has_tables || leads_) all.emplace_back([this] { store::sync_directory(path_, opened_.fd()); });
  if (fresh_)
    all.emplace_back([this] {
      const fs::path parent = fs::path(path_).parent_path();
      store::sync_directory(parent.empty() ? "." : parent);
    });
  return all;
}

void ArrayDirectory::remove(transport::Transport& group) const {
  constexpr std::string_view what = "remove disk array";
  const auto has_it = [&] { return leads_ && opened_ && fs::exists(path_); };
  world::agree(group, what, [&] {
    if (has_it()) delete_manifest();
  });
  world::agree(group, what, [&] {
    if (!has_it()) return;
    delete_files(opened_);
    translated(what, path_, [&] { fs::remove(path_); });
  });
}

}  // namespace outcore::array
