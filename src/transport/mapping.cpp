#include "transport/mapping.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/pause.hpp"
#include "outcore/error.hpp"

namespace outcore::transport {
namespace {

#ifndef MADV_COLLAPSE  // Linux 6.1; not in the C library yet
constexpr int MADV_COLLAPSE = 25;
#endif

using File = std::pair<std::uint64_t, std::uint64_t>;  // device, inode

std::uintptr_t round_up(std::uintptr_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

/// As mmap, but at a multiple of `alignment`.
void* map_aligned(std::size_t size_bytes, std::size_t alignment, int flags, int fd) {
  void* const room =
      mmap(nullptr, size_bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return room;
  const auto begin = reinterpret_cast<std::uintptr_t>(room), first = round_up(begin, alignment);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t last = first + round_up(size_bytes, page),
                       end = begin + round_up(size_bytes + alignment, page);
  void* const data =
      mmap(reinterpret_cast<void*>(first), size_bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0);
  if (data == MAP_FAILED) {
    const int error = errno;
    munmap(room, size_bytes + alignment);
    errno = error;
    return data;
  }
  if (first > begin) munmap(room, first - begin);
  if (end > last) munmap(reinterpret_cast<void*>(last), end - last);
  return data;
}

}  // namespace

struct Mapping::Pages {
  std::byte* data = nullptr;
  std::size_t size_bytes;
  File file{};
  std::size_t file_offset = 0;
  bool is_foreign = false;

  explicit Pages(std::size_t its_size_bytes) : size_bytes(its_size_bytes) {}
  ~Pages() {
    if (data && !is_foreign) munmap(data, size_bytes);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  [[nodiscard]] bool has(std::size_t offset, std::size_t bytes) const noexcept {
    return offset <= size_bytes && bytes <= size_bytes - offset;
  }

  /// The shared mappings of this process.
  struct All {
    std::shared_mutex mutex;
    std::map<const std::byte*, Pages*, std::less<>> by_address;
    std::map<File, std::shared_ptr<Pages>> by_file;
  };
  static All& all() {
    static auto& instance = *new All;  // outlives every mapping
    return instance;
  }

  static void add(const std::shared_ptr<Pages>& pages) {
    const std::unique_lock lock(all().mutex);
    if (all().by_file.try_emplace(pages->file, pages).second)
      all().by_address.emplace(pages->data, pages.get());
  }
  static void remove(const std::byte* data, const File& file) {
    const std::unique_lock lock(all().mutex);
    if (all().by_address.erase(data) > 0) all().by_file.erase(file);
  }
};

Mapping::Mapping(std::size_t size_bytes) : Mapping(-1, size_bytes, MAP_PRIVATE | MAP_ANONYMOUS) {}
Mapping::Mapping(int fd, std::size_t size_bytes) : Mapping(fd, size_bytes, MAP_SHARED) {}

Mapping::Mapping(int fd, std::size_t size_bytes, int flags) : shared_(fd >= 0) {
  const std::size_t mapped_bytes = std::max<std::size_t>(size_bytes, 1);
  pages_ = std::make_shared<Pages>(mapped_bytes);
  const bool large = mapped_bytes >= huge_page_bytes;
  const auto alignment = large ? huge_page_bytes : static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* data = map_aligned(mapped_bytes, alignment, flags | MAP_NORESERVE, fd);
  if (data == MAP_FAILED)
    throw Error(errno, {.attempted = "map memory", .size_bytes = static_cast<std::int64_t>(size_bytes)});
  data_ = static_cast<std::byte*>(data);
  pages_->data = data_;
  if (large) madvise(data, mapped_bytes, MADV_HUGEPAGE);  // if the system agrees
  struct stat status{};
  if (!shared_ || fstat(fd, &status) != 0) return;
  pages_->file = {status.st_dev, status.st_ino};
  Pages::add(pages_);
}

Mapping::~Mapping() {
  if (shared_) Pages::remove(data_, pages_->file);
}

void Mapping::clear(std::byte* begin, std::size_t size_bytes) const noexcept {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(begin), last = first + size_bytes;
  const std::uintptr_t whole_first = round_up(first, page), whole_last = last / page * page;
  if (whole_first >= whole_last || madvise(reinterpret_cast<void*>(whole_first), whole_last - whole_first,
                                           shared_ ? MADV_REMOVE : MADV_DONTNEED) != 0) {
    std::memset(begin, 0, size_bytes);
    return;
  }
  std::memset(begin, 0, whole_first - first);
  std::memset(reinterpret_cast<void*>(whole_last), 0, last - whole_last);
}

void Mapping::populate(std::byte* begin, std::size_t size_bytes) const noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = round_up(at, huge_page_bytes),
                       last = (at + size_bytes) / huge_page_bytes * huge_page_bytes;
  if (!shared_ || first >= last) return;  // memory of one process gets huge pages when it is touched
  for (std::uintptr_t block = first; block < last; block += huge_page_bytes)
    (void)*reinterpret_cast<const volatile char*>(block);  // an empty one would be refused
  // Unlike MADV_HUGEPAGE, this works also if the system gives shared memory no huge pages by itself, as is
  // usual. Measured: [M22].
  madvise(reinterpret_cast<void*>(first), last - first, MADV_COLLAPSE);
}

ForeignMapping::ForeignMapping(const std::byte* inside) {
  const auto address = reinterpret_cast<std::uintptr_t>(inside);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0, offset = 0, inode = 0;
    unsigned int major = 0, minor = 0;
    char access[5] = {}, path[16] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %x:%x %lu %15s", &begin, &end, access, &offset, &major,
                    &minor, &inode, path) < 7 ||
        address < begin || address >= end)
      continue;
    // Only memory of a file is identified by its inode: the inodes of devices, for example, do not identify
    // bytes.
    const std::string_view name = path;
    if (access[3] != 's' || !(name.starts_with("/dev/shm/") || name.starts_with("/memfd:"))) return;
    pages_ = std::make_shared<Mapping::Pages>(end - begin);
    pages_->is_foreign = true;
    pages_->data = reinterpret_cast<std::byte*>(begin);
    pages_->file = {makedev(major, minor), inode};
    pages_->file_offset = offset;
    Mapping::Pages::add(pages_);
    return;
  }
}

ForeignMapping::~ForeignMapping() {
  if (!pages_) return;
  Mapping::Pages::remove(pages_->data, pages_->file);
  for (Pause pause; pages_.use_count() > 1;) pause();
}

std::optional<SharedLocation> shared_location(std::span<const std::byte> bytes) noexcept {
  auto& all = Mapping::Pages::all();
  const std::shared_lock lock(all.mutex);
  auto after = all.by_address.upper_bound(bytes.data());
  if (after == all.by_address.begin()) return std::nullopt;
  const Mapping::Pages& pages = *(--after)->second;
  const auto offset = static_cast<std::size_t>(bytes.data() - pages.data);
  if (!pages.has(offset, bytes.size())) return std::nullopt;
  return SharedLocation{pages.file.first, pages.file.second,
                        static_cast<std::int64_t>(pages.file_offset + offset)};
}

std::shared_ptr<std::byte> see_shared(const SharedLocation& location, std::size_t size_bytes) noexcept {
  auto& all = Mapping::Pages::all();
  const std::shared_lock lock(all.mutex);
  const auto found = all.by_file.find({location.device, location.inode});
  if (found == all.by_file.end() || location.offset < 0) return nullptr;
  const auto& pages = found->second;
  const auto offset = static_cast<std::size_t>(location.offset);
  if (offset < pages->file_offset || !pages->has(offset - pages->file_offset, size_bytes)) return nullptr;
  return {pages, pages->data + (offset - pages->file_offset)};
}

bool is_foreign(const std::byte* seen) noexcept {
  auto& all = Mapping::Pages::all();
  const std::shared_lock lock(all.mutex);
  const auto after = all.by_address.upper_bound(seen);
  if (after == all.by_address.begin()) return false;
  const Mapping::Pages& pages = *std::prev(after)->second;
  return pages.is_foreign && pages.has(static_cast<std::size_t>(seen - pages.data), 1);
}

}  // namespace outcore::transport
