#include "transport/mapping.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "outcore/error.hpp"

namespace outcore::transport {
namespace {

constexpr std::size_t huge_page_bytes = 2 << 20;

/// The shared mappings of this process. Whoever copies from one holds the lock, so that it stays.
struct Shared {
  using File = std::pair<std::uint64_t, std::uint64_t>;  // device, inode
  struct Place {
    File file;
    std::size_t size_bytes;
  };
  std::shared_mutex mutex;
  std::map<const std::byte*, Place, std::less<>> by_address;
  std::map<File, std::span<const std::byte>> by_file;
};

Shared& shared() {
  static auto& all = *new Shared;  // outlives every mapping
  return all;
}

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
  struct stat status{};
  if (!shared_ || fstat(fd, &status) != 0) return;
  const std::unique_lock lock(shared().mutex);
  const Shared::File file{status.st_dev, status.st_ino};
  if (shared().by_file.try_emplace(file, data_, size_bytes_).second)
    shared().by_address.insert({data_, {file, size_bytes_}});
}

Mapping::~Mapping() {
  if (shared_) {
    const std::unique_lock lock(shared().mutex);
    if (const auto found = shared().by_address.find(data_); found != shared().by_address.end()) {
      shared().by_file.erase(found->second.file);
      shared().by_address.erase(found);
    }
  }
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

std::optional<SharedPlace> shared_place(std::span<const std::byte> bytes) noexcept {
  const std::shared_lock lock(shared().mutex);
  auto after = shared().by_address.upper_bound(bytes.data());
  if (after == shared().by_address.begin()) return std::nullopt;
  const auto& [data, place] = *--after;
  const auto offset = static_cast<std::size_t>(bytes.data() - data);
  if (offset > place.size_bytes || bytes.size() > place.size_bytes - offset) return std::nullopt;
  return SharedPlace{place.file.first, place.file.second, static_cast<std::int64_t>(offset)};
}

bool copy_shared(const SharedPlace& from, std::span<std::byte> into) noexcept {
  const std::shared_lock lock(shared().mutex);
  const auto found = shared().by_file.find({from.device, from.inode});
  if (found == shared().by_file.end()) return false;
  const auto offset = static_cast<std::size_t>(from.offset);
  if (offset > found->second.size() || into.size() > found->second.size() - offset) return false;
  std::memcpy(into.data(), found->second.data() + offset, into.size());
  return true;
}

}  // namespace outcore::transport
