#include "outcore/scratch.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <set>

#include "base/uninterrupted.hpp"
#include "device/buffer.hpp"
#include "device/file.hpp"
#include "outcore/error.hpp"

namespace outcore::device {
namespace {

constexpr std::int64_t probe_bytes = 8 << 20;

/// Why a path is no place for scratch, in a few words; empty if it is one.
std::string refusal(const std::string& path) {
  if (!path.starts_with('/')) return "not an absolute path";
  try {
    (void)checked_scratch(path);
    const auto system = file_system(path);
    if (system.memory) return system.type + " lives in memory";
    if (system.network) return system.type + " is a network file system";
    struct stat about{};
    if (stat(path.c_str(), &about) == 0) {
      if (about.st_uid != geteuid() && about.st_uid != 0) return "it belongs to another user";
      if (about.st_mode & S_IWOTH && !(about.st_mode & S_ISVTX)) return "everybody may delete files there";
    }
    if (system.free_bytes < 2 * probe_bytes) return std::to_string(system.free_bytes) + " bytes free";
  } catch (const Error& error) {
    return error.code().message();
  }
  return {};
}

/// Seconds to write a few MiB to the disk under a directory and to read them back; infinity if that fails.
double probe_seconds(const std::string& directory) {
  constexpr double failed = std::numeric_limits<double>::infinity();
  std::string name = directory + "/outcore-probe-XXXXXX";
  const int fd = mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return failed;
  unlink(name.c_str());
  const Buffer buffer(probe_bytes);
  const auto start = std::chrono::steady_clock::now();
  const bool moved =
      uninterrupted([&] { return pwrite(fd, buffer.data(), probe_bytes, 0); }) == probe_bytes &&
      uninterrupted([&] { return fdatasync(fd); }) == 0 &&
      posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0 &&
      uninterrupted([&] { return pread(fd, buffer.data(), probe_bytes, 0); }) == probe_bytes;
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  ::close(fd);
  return moved ? taken.count() : failed;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::vector<ScratchCandidate> default_candidates() {
  std::vector<ScratchCandidate> list;
  for (const char* name : {"SLURM_TMPDIR", "TMPDIR"})
    if (!variable(name).empty()) list.push_back({name, variable(name)});
  if (const auto user = variable("USER"); !user.empty() && user.find('/') == std::string::npos)
    for (const char* parent : {"/scratch/", "/local/"}) list.push_back({"usual place", parent + user});
  for (const char* path : {"/var/tmp", "/tmp"}) list.push_back({"usual place", path});
  return list;
}

}  // namespace

std::string checked_scratch(const std::string& scratch, bool writes) {
  const auto fail = [&](int errno_value, std::string detail) {
    throw Error(errno_value,
                {.attempted = "use scratch directory", .path = scratch, .detail = std::move(detail)});
  };
  if (scratch.empty()) fail(ENOENT, "no directory was given");
  std::error_code code;
  const auto resolved = std::filesystem::canonical(scratch, code);
  if (code) fail(code.value(), "");
  if (!std::filesystem::is_directory(resolved, code)) fail(ENOTDIR, "");
  if (faccessat(AT_FDCWD, resolved.c_str(), R_OK | X_OK | (writes ? W_OK : 0), AT_EACCESS) != 0)
    fail(errno, writes ? "it must be readable and writable" : "it must be readable");
  return resolved;
}

std::string choose_scratch(const std::vector<ScratchCandidate>& candidates) {
  std::string best, refused;
  double best_seconds = 0;
  std::set<dev_t> devices;
  for (const auto& [source, path] : candidates) {
    if (const auto why = refusal(path); !why.empty()) {
      if (!refused.empty()) refused += "; ";
      refused.append(path).append(" (").append(source).append("): ").append(why);
      continue;
    }
    struct stat status{};
    if (stat(path.c_str(), &status) != 0 || !devices.insert(status.st_dev).second) continue;
    if (devices.size() == 1) {  // the usual case: nothing to compare, so nothing is measured yet
      best = path;
      continue;
    }
    if (devices.size() == 2) best_seconds = probe_seconds(best);
    if (const double seconds = probe_seconds(path); seconds < best_seconds) {
      best = path;
      best_seconds = seconds;
    }
  }
  if (best.empty())
    throw Error(ENOENT, {.attempted = "choose a scratch directory",
                         .detail = "set OUTCORE_SCRATCH or name one; refused: " + refused});
  return checked_scratch(best);
}

const std::string& default_scratch() {
  static const std::string chosen = [] {
    const auto wanted = variable("OUTCORE_SCRATCH");
    return wanted.empty() ? choose_scratch(default_candidates()) : checked_scratch(wanted);
  }();
  return chosen;
}

}  // namespace outcore::device
