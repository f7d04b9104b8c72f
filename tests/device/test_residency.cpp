// The content of the page cache: reads that use it, and random reads that fill it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "device/buffer.hpp"
#include "device/fault.hpp"
#include "device/file.hpp"
#include "support/check.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore::device;
using Bytes = std::vector<std::byte>;

namespace {

constexpr std::int64_t file_bytes = 16 << 20;

/// A file on the disk, no part of which is in the page cache.
class ColdFile {
 public:
  ColdFile() {
    Bytes bytes(file_bytes);
    std::mt19937_64 random(1);
    for (std::size_t i = 0; i < bytes.size(); i += 8) reinterpret_cast<std::uint64_t&>(bytes[i]) = random();
    File(path()).write(bytes, 0);
    fd_ = open(path().c_str(), O_RDONLY | O_CLOEXEC);
    fsync(fd_);
    posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
  }
  ~ColdFile() { close(fd_); }

  [[nodiscard]] std::string path() const { return directory_ / "file"; }

  /// The number of bytes of a range that are in the page cache.
  [[nodiscard]] std::int64_t resident(std::int64_t offset = 0, std::int64_t size = file_bytes) const {
    void* const map = mmap(nullptr, static_cast<std::size_t>(size), PROT_READ, MAP_SHARED, fd_, offset);
    std::vector<unsigned char> pages(static_cast<std::size_t>(size / 4096));
    mincore(map, static_cast<std::size_t>(size), pages.data());
    munmap(map, static_cast<std::size_t>(size));
    std::int64_t count = 0;
    for (const unsigned char page : pages) count += page & 1;
    return 4096 * count;
  }
  void load(std::int64_t size = file_bytes) const {
    Bytes bytes(static_cast<std::size_t>(size));
    posix_fadvise(fd_, 0, 0, POSIX_FADV_RANDOM);  // nothing is read ahead
    (void)!pread(fd_, bytes.data(), bytes.size(), 0);
  }

 private:
  TemporaryDirectory directory_;
  int fd_ = -1;
};

/// Reads `count` records at distinct random places.
void read_randomly(File& file, int count) {
  std::vector<std::int64_t> order(file_bytes / 1600);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = 1600 * static_cast<std::int64_t>(i);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(7));
  Bytes record(1600);
  for (int i = 0; i < count; ++i) file.read(record, order[static_cast<std::size_t>(i)]);
}

}  // namespace

TEST("what the page cache holds is resident, also in the range that follows") {
  const ColdFile cold;
  cold.load();
  File file(cold.path());
  if (!file.resident(5'000, 100'000)) {
    std::puts("      NOT TESTED: this kernel cannot tell what is in the page cache (cachestat, Linux 6.5)");
    return;
  }
  for (std::int64_t offset = 105'000; offset + 100'000 <= file_bytes; offset += 100'000)
    check::is_true(file.resident(offset, 100'000));
}

TEST("what is not in the page cache is not resident, nor brought there") {
  const ColdFile cold;
  File file(cold.path());
  check::is_true(!file.resident(5'000, 100'000));
  check::equal(cold.resident(), 0);
}

TEST("a range of which a part is resident is not") {
  const ColdFile cold;
  File file(cold.path(), {.page_cache = PageCache::buffered});
  Bytes got(4096);
  file.read(got, 1 << 20);
  check::is_true(file.resident(1 << 20, 4096));
  check::is_true(!file.resident((1 << 20) - 4096, 8192));
}

TEST("a range beyond the end is not resident") {
  const ColdFile cold;
  cold.load();
  File file(cold.path());
  check::is_true(!file.resident(file_bytes - 5'000, 10'000));
}

TEST("large reads of what the page cache holds use it, up to where it ends") {
  constexpr std::int64_t record = 256 << 10, loaded = 36 * record;
  const ColdFile cold;
  cold.load(loaded);
  std::vector<std::int64_t> direct;
  const auto engine =
      make_fault_engine(make_thread_engine(1), {.script = [&](std::uint64_t, const Operation& o) {
                          if (o.kind == Operation::Kind::read && (fcntl(o.fd, F_GETFL) & O_DIRECT))
                            direct.push_back(o.offset);
                          return Fault::none;
                        }});
  File file(cold.path(), {.engine = engine.get()});
  if (!file.resident(0, 4096) || !file.direct_available()) return;  // told above
  const Buffer got(record);                                         // aligned, as direct reads need it
  for (std::int64_t offset = 0; offset < file_bytes; offset += record) file.read(got.span(), offset);
  check::is_true(!direct.empty());
  check::is_true(std::ranges::all_of(direct, [&](std::int64_t at) { return at >= loaded; }));
  check::is_true(cold.resident() < loaded + 2 * record);  // nor was the rest brought there
}

TEST("a small nonblocking read of what the page cache holds is complete at once, with the right bytes") {
  const ColdFile file;
  file.load();
  for (const PageCache page_cache : {PageCache::automatic, PageCache::buffered}) {
    File opened(file.path(), {.page_cache = page_cache});
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{700}, std::size_t{32} << 10, std::size_t{128} << 10}) {
      Bytes wanted(size), found(size), copied(size);
      opened.read(wanted, 12345);
      auto request = opened.read_async(found, 12345);
      check::is_true(request.done());
      check::equal(request.wait(), static_cast<std::int64_t>(size));
      check::is_true(found == wanted);
      check::is_true(opened.copy_cached(copied, 12345));
      check::is_true(copied == wanted);
    }
  }
}

TEST("nonblocking reads past the page cache bring nothing there") {
  const ColdFile cold;
  File opened(cold.path());
  if (!opened.direct_available()) return;
  const Buffer got(96 << 10);  // aligned, as direct reads need it
  for (std::int64_t offset = 0; offset < file_bytes; offset += 1 << 20)
    check::equal(opened.read_async(got.span(), offset).wait(), std::int64_t{96 << 10});
  check::equal(cold.resident(), std::int64_t{0});
}

TEST("a range is copied from the page cache as a whole or not at all") {
  const ColdFile cold;
  File opened(cold.path());
  Bytes page(4096);
  check::is_true(!opened.copy_cached(page, 8192));  // not there
  cold.load();
  Bytes large((std::size_t{128} << 10) + 1), rest(8192);
  check::is_true(!opened.copy_cached(large, 0));
  check::is_true(!opened.copy_cached(rest, file_bytes - 5000));  // beyond the end
  check::equal(opened.read_async(rest, file_bytes - 5000).wait(), std::int64_t{5000});
  check::is_true(opened.copy_cached(page, 8192));
  File direct(cold.path(), {.page_cache = PageCache::direct});
  check::is_true(!direct.copy_cached(page, 8192));
  const auto error = check::throws<outcore::Error>([&] { static_cast<void>(opened.copy_cached(page, -1)); });
  check::equal(error.errno_value(), EINVAL);
}

TEST("with direct I/O nothing counts as resident") {
  const ColdFile cold;
  cold.load();
  File file(cold.path(), {.page_cache = PageCache::direct});
  check::is_true(!file.resident(0, 10'000));
}

TEST("a few random reads bring nothing but their own pages") {
  const ColdFile cold;
  File file(cold.path());
  file.truncate(std::int64_t(4) << 30);  // so large that what a busy machine loses is little
  read_randomly(file, 6);
  check::is_true(cold.resident() <= 6 * 2 * 4096);
}

TEST("small sequential reads are read ahead of by the kernel") {
  const ColdFile cold;
  File file(cold.path());
  Bytes record(1600);
  int read = 0;
  const auto is_ahead = [&] { return read >= 100 && cold.resident() >= 2 * read * 1600; };
  // Less is read ahead while memory is short.
  for (; read < 1000 && !is_ahead(); ++read) file.read(record, 1600 * read);
  check::is_true(is_ahead());
}

TEST("random reads that wait for long bring all of a file that fits into memory") {
  const ColdFile cold;
  {
    FaultPlan plan;
    plan.slow_ns = 1'000'000;
    plan.script = [](std::uint64_t, const Operation& o) {
      const bool waits = o.kind == Operation::Kind::read && !o.cached_only && o.size_bytes <= 1600;
      return waits ? Fault::slow : Fault::none;
    };
    const auto slow = make_fault_engine(make_thread_engine(2), plan);
    File file(cold.path(), {.engine = slow.get()});
    read_randomly(file, 20);  // of a millisecond each: more than a sixteenth of 16 MiB at 1 GB/s
    slow->stop();             // completes what was begun in the background
  }
  check::equal(cold.resident(), file_bytes);
}

TEST("random reads get the right bytes while the file is being brought into memory") {
  const ColdFile cold;
  File file(cold.path()), other(cold.path(), {.page_cache = PageCache::buffered});
  std::mt19937_64 random(3);
  Bytes got(3000), expected(3000);
  for (int i = 0; i < 3000; ++i) {
    const auto offset = static_cast<std::int64_t>(random() % (file_bytes - 3000));
    file.read(got, offset);
    if (i % 10 == 0) {
      other.read(expected, offset);
      check::is_true(got == expected);
    }
  }
}

TEST("buffered files are left to the kernel") {
  const ColdFile cold;
  File file(cold.path(), {.page_cache = PageCache::buffered});
  read_randomly(file, 200);
  check::is_true(cold.resident() <= 200 * 2 * 4096);
}

TEST_MAIN
