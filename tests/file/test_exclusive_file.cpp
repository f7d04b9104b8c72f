#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <semaphore>
#include <thread>
#include <vector>

#include "outcore/error.hpp"
#include "outcore/exclusive_file.hpp"
#include "outcore/extend/engine.hpp"
#include "outcore/scratch.hpp"
#include "outcore/trace.hpp"
#include "support/bytes.hpp"
#include "support/check.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore;
using namespace outcore::file;

namespace {

const trace::Counter& counter(const trace::Snapshot& snapshot, trace::Op op) {
  return snapshot.counters[std::size_t(trace::Layer::file)][std::size_t(op)];
}

/// Writes at one offset wait until the test lets them go on.
class HoldingEngine final : public device::Engine {
 public:
  explicit HoldingEngine(std::int64_t offset) : offset_(offset) {}
  ~HoldingEngine() override { stop(); }
  [[nodiscard]] const char* name() const noexcept override { return "holding"; }
  void submit(std::shared_ptr<device::Task> task) override {
    threads_.emplace_back([this, task] {
      while (const device::Operation* operation = task->next()) task->result(run(*operation));
    });
  }
  std::int64_t run(const device::Operation& operation) noexcept override {
    if (operation.kind == device::Operation::Kind::write && operation.offset == offset_) {
      begun.release();
      go.acquire();
    }
    return run_plainly(operation);
  }
  void stop() noexcept override {
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

  std::counting_semaphore<> begun{0}, go{0};

 private:
  std::int64_t offset_;
  std::vector<std::thread> threads_;
};

/// The number of open descriptors of this process.
int descriptors() {
  const auto all = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<int>(std::distance(begin(all), end(all)));
}

}  // namespace

TEST("what was written is read back") {
  TemporaryDirectory scratch;
  ExclusiveFile file("ints", {.scratch = scratch});
  const auto bytes = pattern(100'000);
  check::equal(file.write(bytes, 12'345), 100'000);
  check::is_true(read_back(file, bytes.size(), 12'345) == bytes);
}

TEST("a gap reads as zeros") {
  TemporaryDirectory scratch;
  ExclusiveFile file("ints", {.scratch = scratch});
  file.write(pattern(10), 5000);
  check::is_true(read_back(file, 5000) == Bytes(5000));
}

TEST("a read beyond the end gives fewer bytes") {
  TemporaryDirectory scratch;
  ExclusiveFile file("ints", {.scratch = scratch});
  file.write(pattern(100), 0);
  check::equal(read_back(file, 100, 60).size(), 40u);
  check::equal(read_back(file, 100, 100).size(), 0u);
}

TEST("small sequential writes and reads keep their bytes") {
  TemporaryDirectory scratch;
  ExclusiveFile file("ints", {.scratch = scratch});
  const auto bytes = pattern(1600 * 3000);
  for (std::size_t at = 0; at < bytes.size(); at += 1600)
    file.write(std::span(bytes).subspan(at, 1600), std::int64_t(at));
  check::equal(file.length(), std::int64_t(bytes.size()));
  for (std::size_t at = 0; at < bytes.size(); at += 1600) {
    const auto record = read_back(file, 1600, std::int64_t(at));
    check::is_true(std::equal(record.begin(), record.end(), bytes.begin() + std::ptrdiff_t(at)));
  }
}

TEST("a nonblocking read sees small writes made before it") {
  TemporaryDirectory scratch;
  ExclusiveFile file("ints", {.scratch = scratch});
  const auto bytes = pattern(16'000);
  for (std::size_t at = 0; at < bytes.size(); at += 1600)
    file.write(std::span(bytes).subspan(at, 1600), std::int64_t(at));
  Bytes got(bytes.size());
  check::equal(file.read_async(got, 0).wait(), 16'000);
  check::is_true(got == bytes);
}

TEST("a read sees a nonblocking write that was waited for, also where it had read ahead") {
  TemporaryDirectory scratch;
  ExclusiveFile file("ints", {.scratch = scratch});
  file.write(Bytes(1 << 20), 0);
  for (int i = 0; i < 10; ++i) read_back(file, 1600, 1600 * i);
  const auto bytes = pattern(1600);
  file.write_async(bytes, 1600 * 12).wait();
  check::is_true(read_back(file, 1600, 1600 * 12) == bytes);
}

TEST("nothing is read ahead of a nonblocking write under way, which may leave old bytes there") {
  TemporaryDirectory scratch;
  HoldingEngine engine(1600 * 12);
  ExclusiveFile file("ints", {.scratch = scratch, .engine = &engine});
  file.write(Bytes(1 << 20), 0);
  const auto bytes = pattern(1600);
  auto request = file.write_async(bytes, 1600 * 12);
  for (int i = 0; i < 10; ++i) read_back(file, 1600, 1600 * i);
  engine.go.release();
  request.wait();
  check::is_true(read_back(file, 1600, 1600 * 12) == bytes);
}

TEST("nothing is read ahead of a write of another thread under way") {
  TemporaryDirectory scratch;
  HoldingEngine engine(1600 * 12);
  ExclusiveFile file("ints", {.scratch = scratch, .engine = &engine});
  file.write(Bytes(1 << 20), 0);
  const auto bytes = pattern(1600);
  std::thread writer([&] { file.write(bytes, 1600 * 12); });
  engine.begun.acquire();
  for (int i = 0; i < 10; ++i) read_back(file, 1600, 1600 * i);
  engine.go.release();
  writer.join();
  check::is_true(read_back(file, 1600, 1600 * 12) == bytes);
}

TEST("a thousand requests may be outstanding") {
  TemporaryDirectory scratch;
  ExclusiveFile file("ints", {.scratch = scratch});
  const auto bytes = pattern(8000 * 1000);
  std::vector<Request> requests;
  for (int i = 0; i < 1000; ++i)
    requests.push_back(file.write_async(std::span(bytes).subspan(8000u * unsigned(i), 8000), 8000 * i));
  wait_all(requests);
  check::is_true(read_back(file, bytes.size()) == bytes);
}

TEST("a name opened again after close finds its bytes") {
  TemporaryDirectory scratch;
  const auto bytes = pattern(5000);
  ExclusiveFile first("ints", {.scratch = scratch});
  first.write(bytes, 0);
  first.close();
  ExclusiveFile second("ints", {.scratch = scratch});
  check::is_true(read_back(second, 5000) == bytes);
}

TEST("two handles of a name see each other's bytes at once") {
  TemporaryDirectory scratch;
  ExclusiveFile first("ints", {.scratch = scratch}), second("ints", {.scratch = scratch});
  for (int i = 0; i < 8; ++i) first.write(pattern(100, unsigned(i)), 100 * i);
  check::is_true(read_back(second, 100, 700) == pattern(100, 7));
}

TEST("two names are two files") {
  TemporaryDirectory scratch;
  ExclusiveFile first("a", {.scratch = scratch}), second("b", {.scratch = scratch});
  first.write(pattern(100), 0);
  check::equal(second.length(), 0);
}

TEST("erase drops the bytes") {
  TemporaryDirectory scratch;
  ExclusiveFile first("ints", {.scratch = scratch});
  first.write(pattern(100), 0);
  first.erase();
  ExclusiveFile second("ints", {.scratch = scratch});
  check::equal(second.length(), 0);
}

TEST("erase gives the descriptors back") {
  TemporaryDirectory scratch;
  {
    ExclusiveFile warm("warm", {.scratch = scratch});
  }
  const int before = descriptors();
  ExclusiveFile file("ints", {.scratch = scratch});
  check::is_true(descriptors() > before);
  file.erase();
  check::equal(descriptors(), before);
}

TEST("on a local disk the file has no name") {
  TemporaryDirectory scratch;
  ExclusiveFile file("ints", {.scratch = scratch});
  file.write(pattern(100), 0);
  check::is_true(!std::filesystem::exists(file.path()));
}

TEST("a kept file and a private one may have the same name") {
  TemporaryDirectory scratch;
  ExclusiveFile kept("ints", {.scratch = scratch, .keep = true}), mine("ints", {.scratch = scratch});
  kept.write(pattern(100), 0);
  check::equal(mine.length(), 0);
}

TEST("closing the last handle of a kept file gives its descriptors back") {
  TemporaryDirectory scratch;
  {
    ExclusiveFile warm("warm", {.scratch = scratch});
  }
  const int before = descriptors();
  ExclusiveFile first("v", {.scratch = scratch, .keep = true}),
      second("v", {.scratch = scratch, .keep = true});
  first.close();
  second.write(pattern(10), 0);
  second.close();
  check::equal(descriptors(), before);
}

TEST("a kept file to be read only is there, and is not written") {
  TemporaryDirectory scratch;
  const ExclusiveFileOptions reads{.scratch = scratch, .keep = true, .read_only = true};
  check::equal(check::throws<Error>([&] { ExclusiveFile("ints", reads); }).errno_value(), ENOENT);
  check::equal(check::throws<Error>([&] {
                 ExclusiveFile("ints", {.scratch = scratch, .read_only = true});
               }).errno_value(),
               EINVAL);
  ExclusiveFile file("ints", {.scratch = scratch, .keep = true}), reader("ints", reads);
  file.write(pattern(100), 0);
  check::is_true(read_back(reader, 100, 0) == pattern(100));  // what the other one wrote, at once
  Bytes bytes(10);
  const std::function<void()> changes[] = {
      [&] { reader.write(bytes, 0); }, [&] { reader.write_async(bytes, 0).wait(); },
      [&] { reader.truncate(1); }, [&] { reader.preallocate(1000); }, [&] { reader.erase(); }};
  for (const auto& change : changes) check::equal(check::throws<Error>(change).errno_value(), EACCES);
  reader.flush();
  check::equal(file.length(), 100);
  // It needs no space on the disk, whatever its length.
  auto long_one = reads;
  long_one.expected_bytes = std::int64_t{1} << 60;
  check::equal(ExclusiveFile("ints", long_one).length(), 100);
}

TEST("erase removes a kept file") {
  TemporaryDirectory scratch;
  ExclusiveFile file("vectors", {.scratch = scratch, .keep = true});
  file.erase();
  check::equal(scratch.count(), 0);
}

TEST("truncate sets the length both ways") {
  TemporaryDirectory scratch;
  ExclusiveFile file("ints", {.scratch = scratch});
  file.write(pattern(100), 0);
  file.truncate(40);
  check::equal(file.length(), 40);
  file.truncate(80);
  check::is_true(read_back(file, 80, 40) == Bytes(40));
}

TEST("truncate drops what was written behind and read ahead") {
  TemporaryDirectory scratch;
  ExclusiveFile file("ints", {.scratch = scratch});
  for (int i = 0; i < 10; ++i) file.write(pattern(1600), 1600 * i);
  for (int i = 0; i < 5; ++i) read_back(file, 1600, 1600 * i);
  file.truncate(0);
  check::equal(file.length(), 0);
  check::equal(read_back(file, 1600, 1600 * 5).size(), 0u);
}

TEST("eof tells whether an offset is at or beyond the end") {
  TemporaryDirectory scratch;
  ExclusiveFile file("ints", {.scratch = scratch});
  for (int i = 0; i < 5; ++i) file.write(pattern(100), 100 * i);
  check::is_true(!file.eof(499));
  check::is_true(file.eof(500));
}

TEST("preallocate reserves and sets the length") {
  TemporaryDirectory scratch;
  ExclusiveFile file("ints", {.scratch = scratch, .keep = true});
  file.preallocate(1 << 20);
  check::equal(file.length(), 1 << 20);
  struct stat status{};
  check::equal(stat(file.path().c_str(), &status), 0);
  check::is_true(status.st_blocks * 512 >= 1 << 20);
}

TEST("a closed file refuses every operation with EBADF") {
  TemporaryDirectory scratch;
  ExclusiveFile file("ints", {.scratch = scratch});
  file.close();
  file.close();
  Bytes bytes(10);
  const std::function<void()> operations[] = {[&] { file.read(bytes, 0); },
                                              [&] { file.write(bytes, 0); },
                                              [&] { (void)file.read_async(bytes, 0); },
                                              [&] { (void)file.write_async(bytes, 0); },
                                              [&] { (void)file.length(); },
                                              [&] { (void)file.eof(0); },
                                              [&] { file.truncate(0); },
                                              [&] { file.preallocate(1); },
                                              [&] { file.flush(); },
                                              [&] { file.erase(); }};
  for (const auto& operation : operations) {
    const auto error = check::throws<Error>(operation);
    check::equal(error.errno_value(), EBADF);
    check::contains(error.what(), "the file is closed");
  }
}

TEST("a negative offset is EINVAL and says so") {
  TemporaryDirectory scratch;
  ExclusiveFile file("ints", {.scratch = scratch});
  Bytes bytes(10);
  const std::function<void()> operations[] = {[&] { file.read(bytes, -1); },
                                              [&] { file.write(bytes, -1); },
                                              [&] { (void)file.read_async(bytes, -1); },
                                              [&] { (void)file.write_async(bytes, -1); },
                                              [&] { (void)file.eof(-1); },
                                              [&] { file.truncate(-1); },
                                              [&] { file.preallocate(-1); }};
  for (const auto& operation : operations) {
    const auto error = check::throws<Error>(operation);
    check::equal(error.errno_value(), EINVAL);
    check::contains(error.what(), "negative");
    check::contains(error.what(), "-1");
  }
}

TEST("names that cannot be are EINVAL with a reason") {
  TemporaryDirectory scratch;
  for (const std::string& name :
       {std::string(), std::string("a/b"), std::string("."), std::string(".."), std::string("a\0b", 3)})
    check::equal(check::throws<Error>([&] { ExclusiveFile file(name, {.scratch = scratch}); }).errno_value(),
                 EINVAL);
}

TEST("no name collides with what the library keeps in its directory") {
  TemporaryDirectory scratch;
  for (const char* name : {"lock", ".lock", "lock.eaf"}) {
    ExclusiveFile file(name, {.scratch = scratch});
    file.write(pattern(10), 0);
    file.erase();
  }
  check::equal(device::clean(scratch).size(), 0u);
}

TEST("more expected bytes than are free is ENOSPC with both numbers, and nothing is made") {
  TemporaryDirectory scratch;
  const auto error = check::throws<Error>([&] {
    ExclusiveFile file("huge", {.scratch = scratch, .keep = true, .expected_bytes = std::int64_t(1) << 60});
  });
  check::equal(error.errno_value(), ENOSPC);
  check::contains(error.what(), "needed: 1152921504606846976 bytes");
  check::contains(error.what(), "free: ");
  check::contains(error.what(), scratch.path());
  check::equal(scratch.count(), 0);
}

TEST("a missing scratch directory is ENOENT with its path") {
  const auto error =
      check::throws<Error>([] { ExclusiveFile file("ints", {.scratch = "/nonexistent/scratch"}); });
  check::equal(error.errno_value(), ENOENT);
  check::contains(error.what(), "/nonexistent/scratch");
}

TEST("threads may share a file") {
  TemporaryDirectory scratch;
  ExclusiveFile file("ints", {.scratch = scratch});
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const auto bytes = pattern(1600, unsigned(1000 * t + i));
        const std::int64_t offset = (300 * t + i) * 1600;
        file.write(bytes, offset);
        wrong[std::size_t(t)] += read_back(file, 1600, offset) != bytes;
      }
    });
  for (auto& thread : threads) thread.join();
  for (int count : wrong) check::equal(count, 0);
}

TEST("every operation is reported to the trace") {
  TemporaryDirectory scratch;
  const auto before = trace::snapshot();
  {
    ExclusiveFile file("ints", {.scratch = scratch});
    Bytes bytes(1000);
    file.write(bytes, 0);
    file.write(bytes, 1000);
    file.read(bytes, 0);
    file.write_async(bytes, 5000).wait();
    file.read_async(bytes, 5000).wait();
    file.flush();
    file.truncate(10);
    file.preallocate(100);
    (void)file.length();
    file.erase();
  }
  ExclusiveFile("other", {.scratch = scratch}).close();
  const auto after = trace::snapshot();
  const auto made = [&](trace::Op op) { return counter(after, op).count - counter(before, op).count; };
  using trace::Op;
  check::equal(made(Op::open), 2u);
  check::equal(made(Op::write), 2u);
  for (const Op op : {Op::read, Op::read_async, Op::write_async, Op::flush, Op::truncate, Op::preallocate,
                      Op::stat, Op::remove, Op::close})
    check::equal(made(op), 1u);
  check::equal(counter(after, Op::write).bytes - counter(before, Op::write).bytes, 2000u);
  check::equal(counter(after, Op::write).sequential - counter(before, Op::write).sequential, 2u);
}

TEST_MAIN
