// The file system under a path: type, free space, direct I/O.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>

#include "base/uninterrupted.hpp"
#include "device/descriptor.hpp"
#include "device/file.hpp"
#include "outcore/error.hpp"

namespace outcore::device {
namespace {

using FileStatus = struct stat;
using FileSpace = struct statvfs;
using FileSystemStatus = struct statfs;

struct Known {
  std::uint32_t magic;
  const char* type;
  bool network, memory;
};

// Numbers of statfs(2); those not in <linux/magic.h> are written out.
constexpr std::array known_types{
    Known{EXT4_SUPER_MAGIC, "ext4", false, false},  // ext2 and ext3 share it
    Known{XFS_SUPER_MAGIC, "xfs", false, false},   Known{BTRFS_SUPER_MAGIC, "btrfs", false, false},
    Known{F2FS_SUPER_MAGIC, "f2fs", false, false}, Known{0x2fc12fc1, "zfs", false, false},
    Known{0xca451a4e, "bcachefs", false, false},   Known{OVERLAYFS_SUPER_MAGIC, "overlay", false, false},
    Known{TMPFS_MAGIC, "tmpfs", false, true},      Known{RAMFS_MAGIC, "ramfs", false, true},
    Known{NFS_SUPER_MAGIC, "nfs", true, false},    Known{0x0bd00bd0, "lustre", true, false},
    Known{0x47504653, "gpfs", true, false},        Known{0x19830326, "beegfs", true, false},
    Known{0x00c36400, "ceph", true, false},        Known{0xff534d42, "cifs", true, false},
    Known{0xfe534d42, "smb2", true, false},        Known{0x01021997, "9p", true, false},
    Known{0x65735546, "fuse", true, false},  // sshfs, glusterfs, ...: assume the worse
    Known{0xaad7aaea, "panfs", true, false},       Known{0x20030528, "orangefs", true, false},
    Known{AFS_SUPER_MAGIC, "afs", true, false},
};

std::string nearest_existing(std::string path) {
  if (path.empty()) path = ".";
  FileStatus about{};
  while (stat(path.c_str(), &about) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) throw Error(errno, {.attempted = "stat", .path = path});
    const std::size_t slash = path.find_last_of('/');
    if (slash == std::string::npos) return ".";
    path.resize(slash == 0 ? 1 : slash);
  }
  return path;
}

/// Direct I/O is a property of files; for a directory, a nameless file is made to find out.
DirectAlign direct_align_at(const std::string& path) {
  FileStatus about{};
  if (stat(path.c_str(), &about) != 0) return {};
  const bool directory = S_ISDIR(about.st_mode);
  const Descriptor file(directory ? open(path.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600)
                                  : open(path.c_str(), O_RDONLY | O_DIRECT | O_NONBLOCK | O_CLOEXEC));
  return file ? direct_align(file.get()) : DirectAlign{};
}

}  // namespace

FileSystem file_system(const std::string& path) {
  const std::string there = nearest_existing(path);
  FileSystemStatus kind{};
  FileSpace space{};
  if (uninterrupted([&] { return statfs(there.c_str(), &kind); }) != 0 ||
      uninterrupted([&] { return statvfs(there.c_str(), &space); }) != 0)
    throw Error(errno, {.attempted = "query of the file system", .path = there});
  FileSystem result;
  const auto magic = static_cast<std::uint32_t>(kind.f_type);
  char number[16];
  std::snprintf(number, sizeof number, "0x%x", magic);
  result.type = number;
  for (const Known& known : known_types) {
    if (known.magic != magic) continue;
    result.type = known.type;
    result.network = known.network;
    result.memory = known.memory;
  }
  const auto unit = static_cast<std::int64_t>(space.f_frsize);
  result.total_bytes = static_cast<std::int64_t>(space.f_blocks) * unit;
  result.free_bytes = static_cast<std::int64_t>(space.f_bavail) * unit;
  const DirectAlign align = direct_align_at(there);
  result.direct_memory_align = static_cast<std::int32_t>(align.memory);
  result.direct_offset_align = static_cast<std::int32_t>(align.offset);
  return result;
}

}  // namespace outcore::device
