#include "transport/mapping.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "outcore/error.hpp"

namespace outcore::transport {
namespace {

constexpr std::size_t huge_page_bytes = 2 << 20;

}  // namespace

Mapping::Mapping(std::size_t size_bytes) : Mapping(-1, size_bytes, MAP_PRIVATE | MAP_ANONYMOUS) {}
Mapping::Mapping(int fd, std::size_t size_bytes) : Mapping(fd, size_bytes, MAP_SHARED) {}

Mapping::Mapping(int fd, std::size_t size_bytes, int flags)
    : size_bytes_(std::max<std::size_t>(size_bytes, 1)), shared_(fd >= 0) {
  void* data = mmap(nullptr, size_bytes_, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd, 0);
  if (data == MAP_FAILED)
    throw Error(errno, {.attempted = "map memory", .size_bytes = static_cast<std::int64_t>(size_bytes)});
  data_ = static_cast<std::byte*>(data);
  if (size_bytes_ >= huge_page_bytes)
    madvise(data, size_bytes_, MADV_HUGEPAGE);  // if the system likes it, too
}

Mapping::~Mapping() {
  munmap(data_, size_bytes_);
}

void Mapping::clear(std::byte* begin, std::size_t size_bytes) const noexcept {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(begin), last = first + size_bytes;
  const std::uintptr_t whole_first = (first + page - 1) / page * page, whole_last = last / page * page;
  if (whole_first >= whole_last || madvise(reinterpret_cast<void*>(whole_first), whole_last - whole_first,
                                           shared_ ? MADV_REMOVE : MADV_DONTNEED) != 0) {
    std::memset(begin, 0, size_bytes);
    return;
  }
  std::memset(begin, 0, whole_first - first);
  std::memset(reinterpret_cast<void*>(whole_last), 0, last - whole_last);
}

}  // namespace outcore::transport
