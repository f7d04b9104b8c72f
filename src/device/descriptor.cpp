#include "device/descriptor.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/uninterrupted.hpp"

namespace outcore::device {
namespace {

using FileSystemStatus = struct statfs;

/// statx(2) as the kernel lays it out; the C library of Debian 12 does not know the last two fields.
struct KernelStatx {
  std::uint32_t mask;
  std::uint8_t other[148];
  std::uint32_t direct_memory_align, direct_offset_align;
  std::uint64_t spare[12];
};
static_assert(sizeof(KernelStatx) == 256);
constexpr unsigned ask_direct_align = 0x2000;  // STATX_DIOALIGN, Linux 6.1

}  // namespace

int Descriptor::reset() noexcept {
  if (fd_ < 0) return 0;
  const int result = ::close(std::exchange(fd_, -1));
  return result == 0 || errno == EINTR ? 0 : errno;
}

Descriptor open_at(int directory, const std::string& name, int flags, unsigned mode) noexcept {
  return Descriptor(uninterrupted([&] { return ::openat(directory, name.c_str(), flags, mode); }));
}

DirectAlign direct_align(int fd) noexcept {
  FileSystemStatus system{};
  if (fstatfs(fd, &system) != 0 || system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC) return {};
  KernelStatx about{};
  if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, ask_direct_align, &about) == 0 &&
      (about.mask & ask_direct_align))
    return {about.direct_memory_align, about.direct_offset_align};
  return {4096, 4096};
}

}  // namespace outcore::device
