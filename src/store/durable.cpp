#include "outcore/store/durable.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <thread>

#include "device/descriptor.hpp"
#include "device/worker.hpp"
#include "outcore/error.hpp"

namespace outcore::store {

namespace {

device::Descriptor open_directory(const std::string& path) {
  device::Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) throw Error(errno, {.attempted = "open", .path = path});
  return directory;
}

void sync(const device::Descriptor& directory, const std::string& path) {
  // File systems that cannot do it say so, and need it not.
  if (::fsync(directory.get()) != 0 && errno != EINVAL && errno != EROFS)
    throw Error(errno, {.attempted = "flush", .path = path});
}

}  // namespace

void sync_directory(const std::string& path) {
  sync(open_directory(path), path);
}

void rename_durably(const std::string& from, const std::string& to, bool* renamed) {
  const std::string parent = std::filesystem::path(to).parent_path();
  const std::string place = parent.empty() ? "." : parent;
  const device::Descriptor directory = open_directory(place);  // before: it may fail
  if (std::rename(from.c_str(), to.c_str()) != 0)
    throw Error(errno, {.attempted = "rename to " + to, .path = from});
  if (renamed) *renamed = true;
  sync(directory, place);
}

void write_durably(const std::string& path, std::span<const std::byte> bytes, device::Engine* engine,
                   bool* replaced) {
  const std::string beside = path + ".new";
  try {
    device::File file = write_unsynced(beside, bytes, engine);
    file.flush();
    file.close();
    rename_durably(beside, path, replaced);
  } catch (...) {
    ::unlink(beside.c_str());
    throw;
  }
}

device::File write_unsynced(const std::string& path, std::span<const std::byte> bytes,
                            device::Engine* engine) {
  device::File file(path, {.truncate = true,
                           .cache = device::Cache::buffered,
                           .expected_bytes = static_cast<std::int64_t>(bytes.size()),
                           .engine = engine});
  file.write(bytes, 0);
  return file;
}

void sync_together(std::span<const std::function<void()>> syncs) {
  constexpr std::size_t most_threads = 8;
  const std::size_t threads = std::min(syncs.size(), most_threads);
  std::vector<std::exception_ptr> failures(syncs.size());
  const auto run = [&](std::size_t first) {
    for (std::size_t i = first; i < syncs.size(); i += threads) try {
        syncs[i]();
      } catch (...) {
        failures[i] = std::current_exception();
      }
  };
  struct Others {  // end before what they refer to
    ~Others() {
      for (std::thread& each : threads) each.join();
    }
    std::vector<std::thread> threads;
  };
  {
    Others others;
    for (std::size_t first = 1; first < threads; ++first)
      others.threads.push_back(start_thread("outcore-sync", [&run, first] { run(first); }));
    run(0);
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

std::vector<std::byte> read_whole(const std::string& path, std::int64_t most_bytes, device::Engine* engine) {
  device::File file(path,
                    {.create = false, .read_only = true, .cache = device::Cache::buffered, .engine = engine});
  const std::int64_t length = file.length();
  if (length > most_bytes)
    throw Error(EFBIG, {.attempted = "read",
                        .path = path,
                        .size_bytes = length,
                        .detail = "at most " + std::to_string(most_bytes) + " were expected"});
  std::vector<std::byte> bytes(static_cast<std::size_t>(length));
  bytes.resize(static_cast<std::size_t>(file.read(bytes, 0)));
  return bytes;
}

}  // namespace outcore::store
