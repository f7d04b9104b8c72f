#include "file/open_file.hpp"

#include <pthread.h>

#include <cerrno>
#include <cstdlib>
#include <unordered_map>

#include "base/file_size_limit.hpp"
#include "device/directory.hpp"
#include "outcore/error.hpp"
#include "outcore/scratch.hpp"
#include "outcore/trace.hpp"

namespace outcore::file {
namespace {

/// Never destroyed: `close_all` closes files at exit, and their buffers must outlive the operations of the
/// engine. A forked child starts with an empty registry and does not touch that of its parent.
struct Registry {
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<OpenFile>> files;
  Registry* of_parent = nullptr;  ///< not used, but reachable for leak checkers

  static Registry& instance() {
    static const bool prepared = [] {
      current = new Registry;
      std::atexit(close_all);
      pthread_atfork([] { current->mutex.lock(); }, [] { current->mutex.unlock(); }, begin_child);
      return true;
    }();
    (void)prepared;
    return *current;
  }

 private:
  static void begin_child() {
    auto* const mine = new Registry;
    mine->of_parent = current;
    current = mine;
  }

  static void close_all() {
    std::unordered_map<std::string, std::shared_ptr<OpenFile>> left;
    {
      const std::lock_guard guard(current->mutex);
      left = current->files;  // a copy: buffers stay
    }
    for (auto& [path, open] : left) try {
        const std::lock_guard use(open->mutex);
        if (open->keep) open->combined.drain();
        open->file.close();
      } catch (const Error&) {  // nobody is left to tell: programs that want the error close the file
      }
  }

  static inline Registry* current = nullptr;
};

void check_name(const std::string& name) {
  const char* why = name.empty()                           ? "the name is empty"
                    : name.find('/') != std::string::npos  ? "a name must not contain '/'"
                    : name.find('\0') != std::string::npos ? "a name must not contain a zero byte"
                    : name == "." || name == ".."          ? "this name is a directory"
                                                           : nullptr;
  if (why) throw Error(EINVAL, {.attempted = "open exclusive file", .path = "'" + name + "'", .detail = why});
}

void check_space(const std::string& path, const device::FileSystem& system, std::int64_t expected,
                 std::int64_t present) {
  if (expected < 0)
    throw Error(EINVAL, {.attempted = "open",
                         .path = path,
                         .detail = "expected_bytes is negative: " + std::to_string(expected)});
  check_file_size("open", path, expected);
  if (const auto needed = expected - present; needed > system.free_bytes)
    throw Error(ENOSPC, {.attempted = "open",
                         .path = path,
                         .detail = "needed: " + std::to_string(needed) + " bytes, free: " +
                                   std::to_string(system.free_bytes) + " bytes on " + system.type});
}

/// Opens it for reading and writing if possible, also for a handle that only reads, because the handles of
/// one file share it.
std::shared_ptr<OpenFile> opened(const std::string& path, device::OpenOptions device_options,
                                 const ExclusiveFileOptions& options, bool named) {
  try {
    return std::make_shared<OpenFile>(path, device_options, options.keep, named);
  } catch (const Error& error) {
    const int code = error.errno_value();
    const bool readable = code == EACCES || code == EPERM || code == EROFS || code == EINVAL;  // perhaps
    if (!options.read_only || !readable) throw;
  }
  device_options.read_only = true;
  return std::make_shared<OpenFile>(path, device_options, options.keep, named);
}

/// Removes the file from the registry, if the registry has this file for its path. The lock must be held.
void forget(Registry& registry, const std::shared_ptr<OpenFile>& open) {
  const auto found = registry.files.find(open->path);
  if (found != registry.files.end() && found->second == open) registry.files.erase(found);
}

/// Writes out the bytes in memory, and throws the error of a failed write that was not reported.
void settle(OpenFile& open) {
  const std::lock_guard use(open.mutex);
  open.combined.drain();
  open.file.settle();
}

}  // namespace

OpenFile::OpenFile(std::string file_path, const device::OpenOptions& options, bool keeps, bool is_named)
    : path(std::move(file_path)),
      keep(keeps),
      read_only(options.read_only),
      named(is_named),
      trace_id(trace::file_id(path)),
      file(path, options),
      combined(file) {}

std::shared_ptr<OpenFile> acquire(const std::string& name, const ExclusiveFileOptions& options) {
  check_name(name);
  if (options.read_only && !options.keep)
    throw Error(EINVAL,
                {.attempted = "open", .path = name, .detail = "read_only is for a file that is kept"});
  const auto scratch = device::checked_scratch(
      options.scratch.empty() ? device::default_scratch() : options.scratch, !options.read_only);
  // A suffix, so that no file has the name of the lock in the process directory.
  const auto path =
      options.keep ? scratch + "/" + name : device::process_directory(scratch) + "/" + name + ".eaf";

  auto& registry = Registry::instance();
  const std::lock_guard guard(registry.mutex);
  auto found = registry.files.find(path);
  const auto system = device::file_system(scratch);
  if (!options.read_only)
    check_space(path, system, options.expected_bytes,
                found == registry.files.end() ? 0 : found->second->file.length());
  if (found == registry.files.end()) {
    const bool named = options.keep || system.network;
    device::OpenOptions device_options;
    device_options.page_cache = options.page_cache;
    device_options.expected_bytes = options.expected_bytes;
    device_options.engine = options.engine;
    device_options.sole_writer = true;
    device_options.unlink_after_open = !named;
    // Others may write to the directory: no links of theirs are followed.
    const device::Directory directory(path.substr(0, path.rfind('/')));
    device_options.directory = directory.fd();
    device_options.create = !options.read_only;
    found = registry.files.emplace(path, opened(path, device_options, options, named)).first;
  } else if (found->second->read_only && !options.read_only) {
    throw Error(EACCES, {.attempted = "open",
                         .path = path,
                         .detail = "this process has it open, and can only read it: close it first"});
  }
  ++found->second->handles;
  return found->second;
}

void release(const std::shared_ptr<OpenFile>& open) {
  auto& registry = Registry::instance();
  std::unique_lock guard(registry.mutex);
  const bool last = --open->handles == 0;
  if (last && open->keep) forget(registry, open);
  guard.unlock();
  settle(*open);
  if (last && open->keep) open->file.close();
}

void discard(const std::shared_ptr<OpenFile>& open) {
  auto& registry = Registry::instance();
  std::unique_lock guard(registry.mutex);
  const bool last = --open->handles == 0;
  const bool current = registry.files.contains(open->path) && registry.files.at(open->path) == open;
  forget(registry, open);
  if (open->named && current) device::remove_file(open->path);
  guard.unlock();
  if (last) try {
      open->file.close();
    } catch (const Error&) {  // of a failed write, whose bytes are no longer wanted
    }
}

}  // namespace outcore::file
