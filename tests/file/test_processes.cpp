// Exclusive access files and the ends of processes. This process itself does no I/O through the library: it
// only forks, so that its children start without threads.
#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include "outcore/error.hpp"
#include "outcore/exclusive_file.hpp"
#include "outcore/trace.hpp"
#include "support/bytes.hpp"
#include "support/check.hpp"
#include "support/child.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore;
using namespace outcore::file;

namespace {

/// Runs `body` in a child, which must succeed.
void in_child(const std::function<void()>& body) {
  check::equal(status_of_child(body), 0);
}

/// From here on no file of this process can grow beyond this size, as on a full disk.
void limit_file_size(rlim_t size_bytes) {
  signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{size_bytes, size_bytes};
  setrlimit(RLIMIT_FSIZE, &limit);
}

}  // namespace

TEST("a name is private to its process") {
  TemporaryDirectory scratch;
  in_child([&] {
    ExclusiveFile mine("ints", {.scratch = scratch});
    mine.write(pattern(100), 0);
    in_child([&] {
      ExclusiveFile theirs("ints", {.scratch = scratch});
      check::equal(theirs.length(), 0);
    });
  });
}

TEST("a killed process leaves no byte, and after the next start nothing") {
  TemporaryDirectory scratch;
  const int status = killed_after([&] {
    ExclusiveFile file("ints", {.scratch = scratch});
    file.write(pattern(4 << 20), 0);
    file.flush();
  });
  check::is_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch.path()))
    if (entry.is_regular_file()) check::equal(entry.file_size(), 0u);
  in_child([&] { ExclusiveFile file("next", {.scratch = scratch}); });
  check::equal(scratch.count(), 0);
}

TEST("a kept file has its name and outlives the process") {
  TemporaryDirectory scratch;
  const auto bytes = pattern(5000);
  in_child([&] {
    ExclusiveFile file("vectors", {.scratch = scratch, .keep = true});
    file.write(bytes, 0);
    file.close();
  });
  check::equal(std::filesystem::file_size(scratch / "vectors"), 5000u);
  check::equal(scratch.count(), 1);
  in_child([&] {
    ExclusiveFile again("vectors", {.scratch = scratch, .keep = true});
    check::is_true(read_back(again, 5000) == bytes);
  });
}

TEST("a kept file that nobody closed is written out at exit") {
  TemporaryDirectory scratch;
  in_child([&] {
    static auto* const never_destroyed = new ExclusiveFile("vectors", {.scratch = scratch, .keep = true});
    for (int i = 0; i < 100; ++i) never_destroyed->write(pattern(1600, unsigned(i)), 1600 * i);
  });
  check::equal(std::filesystem::file_size(scratch / "vectors"), 160'000u);
}

TEST("a failed write-behind is thrown, and the rest goes on") {
  TemporaryDirectory scratch;
  in_child([&] {
    ExclusiveFile file("ints", {.scratch = scratch});
    limit_file_size(64 << 10);
    const auto write_all = [&] {
      for (int i = 0; i < 100; ++i) file.write(pattern(1600), 1600 * i);
      file.flush();
    };
    check::equal(check::throws<Error>(write_all).errno_value(), EFBIG);
    file.write(pattern(100), 0);
    check::is_true(read_back(file, 100) == pattern(100));
  });
}

TEST("a limit of the size of files is an error that names it, not the end by a signal") {
  TemporaryDirectory scratch;
  in_child([&] {
    signal(SIGXFSZ, SIG_DFL);
    const rlimit limit{64 << 10, 64 << 10};
    setrlimit(RLIMIT_FSIZE, &limit);
    ExclusiveFile file("ints", {.scratch = scratch});
    const Error error = check::throws<Error>([&] { file.write(pattern(1 << 20), 0); });
    check::equal(error.errno_value(), EFBIG);
    check::is_true(std::string(error.what()).find("65536 bytes, by ulimit -f") != std::string::npos);
    file.close();
  });
}

TEST("a failed nonblocking write that nobody waits for fails the close") {
  TemporaryDirectory scratch;
  in_child([&] {
    const auto bytes = pattern(1 << 20);
    ExclusiveFile file("ints", {.scratch = scratch});
    limit_file_size(64 << 10);
    (void)file.write_async(bytes, 0);
    check::equal(check::throws<Error>([&] { file.close(); }).errno_value(), EFBIG);
    check::is_true(file.closed());
  });
}

TEST("a failed operation is reported as failed") {
  TemporaryDirectory scratch;
  in_child([&] {
    ExclusiveFile file("ints", {.scratch = scratch});
    limit_file_size(0);
    check::throws<Error>([&] { file.write(pattern(100), 0); });
    const auto counters = trace::snapshot().counters[std::size_t(trace::Layer::file)];
    check::equal(counters[std::size_t(trace::Op::write)].failed, 1u);
  });
}

TEST("a forked child cannot use the files of its parent, and does not harm them") {
  TemporaryDirectory scratch;
  in_child([&] {
    ExclusiveFile file("ints", {.scratch = scratch, .keep = true});
    for (int i = 0; i < 10; ++i) file.write(pattern(100, unsigned(i)), 100 * i);
    in_child([&] {
      const auto error = check::throws<Error>([&] { file.write(Bytes(1000), 0); });
      check::equal(error.errno_value(), EBADF);
      check::contains(error.what(), "parent");
      file.close();
    });
    check::is_true(read_back(file, 100, 900) == pattern(100, 9));
  });
}

#ifndef __SANITIZE_THREAD__  // whose run-time library cannot start threads in the child of a process that had
                             // some
TEST("a forked child opens files of its own") {
  TemporaryDirectory scratch;
  in_child([&] {
    ExclusiveFile file("ints", {.scratch = scratch});
    file.write(pattern(1000), 0);
    in_child([&] {
      ExclusiveFile mine("ints", {.scratch = scratch});
      mine.write(pattern(300'000, 2), 0);
      check::is_true(read_back(mine, 300'000) == pattern(300'000, 2));
    });
    check::equal(file.length(), 1000);
  });
}
#endif

TEST_MAIN
