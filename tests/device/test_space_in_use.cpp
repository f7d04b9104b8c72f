// The most disk space that files took at the same time.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/space_in_use.hpp"
#include "support.hpp"

using namespace outcore::device;
using support::pattern;
using support::Scratch;

namespace {

constexpr std::int64_t mib = 1 << 20;

void write(File& file, std::int64_t count, std::int64_t from = 0) {
  file.write(pattern(static_cast<std::size_t>(count * mib), 1), from * mib);
}

std::int64_t peak_mib() {
  return (SpaceInUse::peak_bytes() + mib / 2) / mib;
}

}  // namespace

TEST("the peak is of files that are open together, not of all") {
  const Scratch scratch;
  SpaceInUse::forget_peak();
  {
    File one(scratch.file("one"), {.unlink_after_open = true}), two(scratch.file("two"));
    write(one, 3);
    write(two, 2);
    check::equal(peak_mib(), 5);
  }
  File three(scratch.file("three"), {.unlink_after_open = true});
  write(three, 4);
  check::equal(peak_mib(), 5);
}

TEST("a file that was closed, cut or punched counts with what it had before") {
  const Scratch scratch;
  SpaceInUse::forget_peak();
  File cut(scratch.file("cut")), punched(scratch.file("punched"));
  write(cut, 3);
  cut.truncate(0);
  check::equal(peak_mib(), 3);
  write(punched, 5);
  if (!punched.punch(0, 5 * mib)) return;
  write(cut, 1);
  check::equal(peak_mib(), 5);
}

TEST("holes take no space, and a file that is open twice takes it once") {
  const Scratch scratch;
  SpaceInUse::forget_peak();
  File once(scratch.file()), again(scratch.file());
  write(once, 1, 100);
  check::equal(peak_mib(), 1);
}

TEST("what files take when the peak is forgotten is the next peak") {
  const Scratch scratch;
  File kept(scratch.file("kept"), {.unlink_after_open = true});
  write(kept, 2);
  {
    File closed(scratch.file("closed"), {.unlink_after_open = true});
    write(closed, 5);
  }
  SpaceInUse::forget_peak();
  check::equal(peak_mib(), 2);
}

TEST("files that are only read take nothing") {
  const Scratch scratch;
  {
    File file(scratch.file());
    write(file, 2);
  }
  SpaceInUse::forget_peak();
  const File read(scratch.file(), {.read_only = true});
  check::equal(peak_mib(), 0);
}

TEST("requests that are not waited for yet count when they are complete") {
  const Scratch scratch;
  SpaceInUse::forget_peak();
  File file(scratch.file(), {.unlink_after_open = true});
  const auto bytes = pattern(2 * mib, 1);
  file.write_async(bytes, 0).wait();
  check::equal(peak_mib(), 2);
}

TEST("a forked child counts files of its own, not those of its parent") {
  const Scratch scratch;
  SpaceInUse::forget_peak();
  File file(scratch.file("parent"), {.unlink_after_open = true});
  write(file, 3);
  const pid_t child = fork();
  if (child == 0) {
    const bool none = peak_mib() == 0;
    File own(scratch.file("child"), {.unlink_after_open = true});
    write(own, 2);
    _exit(none && peak_mib() == 2 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  check::is_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  check::equal(peak_mib(), 3);
}

TEST_MAIN
