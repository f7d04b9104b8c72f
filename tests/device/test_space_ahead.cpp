// Space reserved ahead of writes, on file systems that gain by it.
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cstdio>

#include "device/fault.hpp"
#include "outcore/extend/engine.hpp"
#include "support.hpp"

using namespace outcore::device;
using support::Bytes;
using support::pattern;
using support::same;
using support::Scratch;

namespace {

constexpr std::int64_t piece = 100'000;

bool reserves(const Scratch& scratch) {
  struct statfs system{};
  if (statfs(scratch.path().c_str(), &system) == 0 && system.f_type == EXT4_SUPER_MAGIC) return true;
  std::puts("      NOT TESTED: space is reserved on ext4 only");
  return false;
}

/// Disk space of a file.
std::int64_t space_bytes(const Scratch& scratch) {
  struct stat about{};
  check::equal(stat(scratch.file().c_str(), &about), 0);
  return about.st_blocks * 512;
}

/// A file with pieces written in the order 0, step, 2 step, ... (modulo count).
struct Written {
  explicit Written(const OpenOptions& options) : file(scratch.file(), options) {}
  void write(int count, int step = 1, int most = 1 << 30) {
    for (int i = 0; i < std::min(count, most); ++i) {
      const int k = static_cast<int>(static_cast<std::int64_t>(i) * step % count);
      file.write(pattern(piece, static_cast<std::uint64_t>(k)), k * piece);
    }
  }
  void check_piece(int k) {
    Bytes back(piece);
    check::equal(file.read(back, k * piece), piece);
    same(back, pattern(piece, static_cast<std::uint64_t>(k)));
  }
  Scratch scratch;
  File file;
};

}  // namespace

TEST("a file that is written on and on has space beyond its end, until it is closed") {
  Written w({.sole_writer = true});
  if (!reserves(w.scratch)) return;
  w.write(30);
  check::equal(w.file.length(), 30 * piece);
  check::is_true(space_bytes(w.scratch) >= 40 * piece);
  w.file.close();
  check::is_true(space_bytes(w.scratch) < 31 * piece);
}

TEST("a file that is written in random order has space for what is missing, which reads as zeros") {
  Written w({.sole_writer = true});
  if (!reserves(w.scratch)) return;
  w.write(101, 37, 50);
  check::is_true(space_bytes(w.scratch) >= 100 * piece);
  w.check_piece(37);
  Bytes back(piece, std::byte(1));
  w.file.read(back, piece * (50 * 37 % 101));
  same(back, Bytes(piece));
}

TEST("a sparse file stays sparse") {
  Written w({.sole_writer = true});
  if (!reserves(w.scratch)) return;
  w.file.write(pattern(piece, 1), 1 << 30);
  w.write(30);
  check::is_true(space_bytes(w.scratch) < 40 * piece);
}

TEST("small files, and those that others write too, get what they need") {
  Written small({.sole_writer = true}), shared({});
  small.write(5);
  shared.write(30);
  check::is_true(space_bytes(small.scratch) < 6 * piece);
  check::is_true(space_bytes(shared.scratch) < 31 * piece);
}

TEST("a file that was truncated grows again") {
  Written w({.sole_writer = true});
  w.write(30);
  w.file.truncate(piece);
  check::is_true(space_bytes(w.scratch) < 2 * piece);
  check::equal(w.file.length(), piece);
  w.write(40);
  for (int k = 0; k < 40; ++k) w.check_piece(k);
}

TEST("space that was preallocated is not reserved again, nor given back") {
  Written w({.sole_writer = true});
  w.file.preallocate(50 * piece);
  w.write(30);
  w.file.close();
  check::is_true(space_bytes(w.scratch) >= 50 * piece && space_bytes(w.scratch) < 51 * piece);
}

TEST("writes do without space that cannot be reserved") {
  int refused = 0;
  const auto full = [&refused](std::uint64_t, const Operation& o) {
    refused += o.kind == Operation::Kind::reserve;
    return o.kind == Operation::Kind::reserve ? Fault::full : Fault::none;
  };
  const auto engine = make_fault_engine(make_thread_engine(2), {.script = full});
  Written w({.sole_writer = true, .engine = engine.get()});
  if (!reserves(w.scratch)) return;
  w.write(30);
  for (int k = 0; k < 30; ++k) w.check_piece(k);
  check::is_true(refused > 0);
  check::is_true(space_bytes(w.scratch) < 31 * piece);
}

TEST_MAIN
