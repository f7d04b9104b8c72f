#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <vector>

#include "outcore/error.hpp"
#include "outcore/scratch.hpp"
#include "support/check.hpp"
#include "support/child.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore;
using namespace outcore::device;
namespace fs = std::filesystem;

namespace {

/// A name like those of process_directory, for a process that has ended.
std::string stale_name() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return "outcore-" + std::to_string(geteuid()) + "-" + host + "-999999-0123abcd";
}

}  // namespace

TEST("the process directory is one for a scratch directory") {
  TemporaryDirectory scratch, other;
  const auto first = process_directory(scratch);
  check::equal(process_directory(scratch), first);
  check::is_true(process_directory(other) != first);
}

TEST("the name of the process directory says user, host and process") {
  TemporaryDirectory scratch;
  const auto name = fs::path(process_directory(scratch)).filename().string();
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  const auto prefix =
      "outcore-" + std::to_string(geteuid()) + "-" + host + "-" + std::to_string(getpid()) + "-";
  check::equal(name.substr(0, prefix.size()), prefix);
}

TEST("only its user may look into the process directory") {
  TemporaryDirectory scratch;
  struct stat status{};
  check::equal(stat(process_directory(scratch).c_str(), &status), 0);
  check::equal(status.st_mode & 0777, 0700u);
}

TEST("one path spelled in two ways has one process directory") {
  TemporaryDirectory scratch;
  check::equal(process_directory(scratch / "../" + fs::path(scratch.path()).filename().string()),
               process_directory(scratch));
}

TEST("the process directory is removed at exit, with what is in it") {
  TemporaryDirectory scratch;
  const int status =
      status_of_child([&] { std::ofstream(process_directory(scratch) + "/left") << "behind"; });
  check::equal(status, 0);
  check::equal(scratch.count(), 0);
}

TEST("a process that is ending removes its directories, and gets new ones if it asks for them") {
  TemporaryDirectory scratch, other;
  std::ofstream(process_directory(scratch) + "/left") << "behind";
  const auto before = process_directory(other);
  device::remove_process_directories();
  check::equal(scratch.count() + other.count(), 0);
  check::is_true(process_directory(other) != before);
  check::equal(other.count("outcore-"), 1);
}

TEST("a killed process leaves a directory that clean removes") {
  TemporaryDirectory scratch;
  check::is_true(
      WIFSIGNALED(killed_after([&] { std::ofstream(process_directory(scratch) + "/left") << "behind"; })));
  check::equal(scratch.count("outcore-"), 1);
  check::equal(clean(scratch).size(), 1u);
  check::equal(scratch.count(), 0);
}

TEST("making a process directory removes stale ones") {
  TemporaryDirectory scratch;
  killed_after([&] { (void)process_directory(scratch); });
  const auto mine = process_directory(scratch);
  check::equal(scratch.count(), 1);
  check::is_true(fs::exists(mine));
}

TEST("clean leaves the directories of live processes alone") {
  TemporaryDirectory scratch;
  const auto mine = process_directory(scratch);
  check::equal(clean(scratch).size(), 0u);
  check::equal(status_of_child([&] { check::equal(clean(scratch).size(), 0u); }), 0);
  check::is_true(fs::exists(mine));
}

TEST("clean leaves what is not ours alone") {
  TemporaryDirectory scratch;
  for (const char* name : {"outcore-0-otherhost-1-0123abcd", "outcore-keep", "mine"})
    fs::create_directory(scratch / name);
  std::ofstream(scratch / stale_name()) << "a file of that name, not a directory";
  check::equal(clean(scratch).size(), 0u);
  check::equal(scratch.count(), 4);
}

TEST("clean removes an empty directory whose maker died before it was locked") {
  TemporaryDirectory scratch;
  fs::create_directory(scratch / stale_name());
  check::equal(clean(scratch).size(), 1u);
}

TEST("clean does not follow symbolic links") {
  TemporaryDirectory scratch, target;
  std::ofstream(target / "precious") << "bytes";
  fs::create_directory_symlink(target.path(), scratch / stale_name());
  check::equal(clean(scratch).size(), 0u);
  killed_after([&] { fs::create_directory_symlink(target.path(), process_directory(scratch) + "/link"); });
  check::equal(clean(scratch).size(), 1u);
  check::is_true(fs::exists(target / "precious"));
}

TEST("a forked child has its own process directory and leaves its parent's alone") {
  TemporaryDirectory scratch;
  const auto mine = process_directory(scratch);
  const int status = status_of_child([&] { check::is_true(process_directory(scratch) != mine); });
  check::equal(status, 0);
  check::is_true(fs::exists(mine));
  check::equal(scratch.count(), 1);
}

TEST("a child that outlives its parent does not keep the parent's directory locked") {
  TemporaryDirectory scratch;
  int started[2], hold[2];
  char byte = 0;
  check::equal(pipe(started) + pipe(hold), 0);
  killed_after([&] {
    (void)process_directory(scratch);
    if (fork() == 0) {  // the grandchild lives until the test closes its end
      close(hold[1]);
      (void)!write(started[1], &byte, 1);
      _exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
    }
    (void)!read(started[0], &byte, 1);
  });
  check::equal(clean(scratch).size(), 1u);
  for (int fd : {started[0], started[1], hold[0], hold[1]}) close(fd);
}

TEST("a process directory that somebody removed is made again") {
  TemporaryDirectory scratch;
  fs::remove_all(process_directory(scratch));
  check::is_true(fs::exists(process_directory(scratch)));
}

TEST("processes that start while others clean lose no directory") {
  TemporaryDirectory scratch;
  const pid_t cleaner = fork();
  if (cleaner == 0)
    for (;;) clean(scratch);
  int failures = 0;
  for (int i = 0; i < 50; ++i)
    failures += status_of_child([&] {
                  const auto mine = process_directory(scratch);
                  for (int k = 0; k < 20; ++k) {
                    std::ofstream(mine + "/file") << k;
                    if (!fs::exists(mine + "/file")) _exit(1);
                  }
                }) != 0;
  kill(cleaner, SIGKILL);
  waitpid(cleaner, nullptr, 0);
  check::equal(failures, 0);
  check::equal(scratch.count(), 0);
}

TEST("a missing scratch directory is ENOENT with its path") {
  const auto error = check::throws<Error>([] { (void)process_directory("/nonexistent/scratch"); });
  check::equal(error.errno_value(), ENOENT);
  check::contains(error.what(), "/nonexistent/scratch");
}

TEST("a scratch directory that is a file is ENOTDIR") {
  TemporaryDirectory scratch;
  std::ofstream(scratch / "file") << "x";
  check::equal(check::throws<Error>([&] { (void)process_directory(scratch / "file"); }).errno_value(),
               ENOTDIR);
}

TEST("no scratch directory is ENOENT") {
  check::equal(check::throws<Error>([] { (void)clean(""); }).errno_value(), ENOENT);
}

TEST("the first usable candidate is chosen, and refusals say why") {
  TemporaryDirectory scratch;
  check::equal(choose_scratch({{"TMPDIR", "relative"}, {"TMPDIR", "/nonexistent"}, {"usual place", scratch}}),
               scratch.path());
}

TEST("when every candidate is refused the error lists all with reasons") {
  const auto error = check::throws<Error>([] {
    (void)choose_scratch({{"TMPDIR", "."}, {"SLURM_TMPDIR", "/nonexistent"}, {"usual place", "/dev/shm"}});
  });
  check::equal(error.errno_value(), ENOENT);
  check::contains(error.what(), ". (TMPDIR): not an absolute path");
  check::contains(error.what(), "/nonexistent (SLURM_TMPDIR): No such file or directory");
  check::contains(error.what(), "/dev/shm (usual place): tmpfs lives in memory");
}

TEST("OUTCORE_SCRATCH is taken as it is, and nothing in its place when it is wrong") {
  TemporaryDirectory scratch;
  const auto with = [](const std::string& value, const std::function<void()>& body) {
    return status_of_child([&] {
      setenv("OUTCORE_SCRATCH", value.c_str(), 1);
      body();
    });
  };
  check::equal(with(scratch, [&] { check::equal(default_scratch(), scratch.path()); }), 0);
  check::equal(with("/nonexistent", [] { check::throws<Error>([] { (void)default_scratch(); }); }), 0);
}

TEST("the default is an absolute directory on a disk") {
  check::equal(status_of_child([] {
                 unsetenv("OUTCORE_SCRATCH");
                 check::equal(default_scratch().front(), '/');
                 check::equal(default_scratch(), choose_scratch({{"itself", default_scratch()}}));
               }),
               0);
}

TEST_MAIN
