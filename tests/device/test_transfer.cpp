// The state machine alone: every operation that it gives out, for every result that it may get. No file is
// involved.
#include <cerrno>
#include <vector>

#include "device/transfer.hpp"
#include "support/check.hpp"

using namespace outcore;
using namespace outcore::device;
using Kind = Operation::Kind;

namespace {

constexpr int cached_fd = 10, direct_fd = 11;
constexpr Target target{cached_fd, direct_fd, 512, 4096};

struct Nobody final : Transfer::Owner {
  int completions = 0;
  void completed(Transfer&) noexcept override { ++completions; }
  Error error_of(const Transfer& transfer) const override { return {transfer.errno_value(), {}}; }
  void waited(const Transfer&, std::uint64_t) noexcept override {}
};

/// Memory that is pointed to but never touched, unless a test gives a Buffer.
iovec at(std::uintptr_t address, std::size_t size) {
  return {reinterpret_cast<void*>(address), size};
}

struct Machine {
  Nobody owner;
  std::vector<iovec> list;
  Transfer transfer;
  Machine(Kind kind, IoPath io_path, std::vector<iovec> parts, std::int64_t offset,
          const Target& where = target, bool blocking = false)
      : list(std::move(parts)), transfer(kind, io_path, where, list, offset, owner, blocking) {}

  /// Checks that the next operation is this one, and gives it `result`.
  void expect(Kind kind, int fd, std::int64_t offset, std::int64_t size, std::int64_t result,
              bool cached_only = false, std::source_location where = std::source_location::current()) {
    const Operation* o = transfer.next();
    check::is_true(o != nullptr, "an operation was expected", where);
    check::equal(int(o->kind), int(kind), where);
    check::equal(o->fd, fd, where);
    check::equal(o->offset, offset, where);
    check::equal(o->size_bytes, size, where);
    check::equal(o->cached_only, cached_only, where);
    transfer.result(result);
  }
  void expect_end(std::int64_t moved, int error = 0,
                  std::source_location where = std::source_location::current()) {
    check::is_true(transfer.next() == nullptr, "the end was expected", where);
    check::equal(transfer.moved_bytes(), moved, where);
    check::equal(transfer.errno_value(), error, where);
    check::is_true((transfer.done() || transfer.blocking()) && owner.completions == 1, "complete, once",
                   where);
  }
};

}  // namespace

TEST("a short transfer goes on where it stopped") {
  Machine m(Kind::write, IoPath::buffered, {at(4096, 1000)}, 50);
  m.expect(Kind::write, cached_fd, 50, 1000, 300);
  const Operation* o = m.transfer.next();
  check::is_true(o->list->iov_base == reinterpret_cast<void*>(4096 + 300), "the memory advances as well");
  m.transfer.result(700);
  m.expect_end(1000);
}

TEST("space is reserved first, and a failure of that is none of the request") {
  for (const int result : {0, -ENOSPC, -EINTR}) {
    Machine m(Kind::write, IoPath::either, {at(4096, 8192)}, 0);
    m.transfer.reserve(4096, 1 << 20);
    m.expect(Kind::reserve, cached_fd, 4096, 1 << 20, result);
    m.expect(Kind::resident, cached_fd, 0, 8192, 0);
    m.expect(Kind::write, direct_fd, 0, 8192, 8192);
    m.expect_end(8192);
  }
}

TEST("a short transfer of a list goes on inside an entry") {
  Machine m(Kind::read, IoPath::buffered, {at(1000, 10), at(2000, 0), at(3000, 20), at(4000, 30)}, 0);
  m.expect(Kind::read, cached_fd, 0, 60, 15);
  const Operation* o = m.transfer.next();
  check::equal(o->list_count, 2U);
  check::is_true(o->list[0].iov_base == reinterpret_cast<void*>(3005) && o->list[0].iov_len == 15,
                 "inside the third");
  check::is_true(o->list[1].iov_len == 30, "and all of the fourth");
  m.transfer.result(45);
  m.expect_end(60);
}

TEST("interrupted and refused operations are repeated") {
  Machine m(Kind::read, IoPath::buffered, {at(4096, 100)}, 0);
  m.expect(Kind::read, cached_fd, 0, 100, -EINTR);
  m.expect(Kind::read, cached_fd, 0, 100, -EAGAIN);
  m.expect(Kind::read, cached_fd, 0, 100, 100);
  m.expect_end(100);
}

TEST("a read ends at the end of the file, a write that moves nothing is an error") {
  Machine read(Kind::read, IoPath::buffered, {at(4096, 100)}, 0);
  read.expect(Kind::read, cached_fd, 0, 100, 40);
  read.expect(Kind::read, cached_fd, 40, 60, 0);
  read.expect_end(40);
  Machine write(Kind::write, IoPath::buffered, {at(4096, 100)}, 0);
  write.expect(Kind::write, cached_fd, 0, 100, 0);
  write.expect_end(0, EIO);
}

TEST("an error ends the transfer and keeps what was moved") {
  Machine m(Kind::write, IoPath::buffered, {at(4096, 100)}, 0);
  m.expect(Kind::write, cached_fd, 0, 100, 30);
  m.expect(Kind::write, cached_fd, 30, 70, -ENOSPC);
  m.expect_end(30, ENOSPC);
}

TEST("direct: ragged ends through the page cache, the middle past it") {
  // Memory that is aligned at the same place as the file: at file offset 4096, 100 bytes in.
  Machine m(Kind::read, IoPath::direct, {at(8192 - 100, 100 + 8192 + 50)}, 4096 - 100);
  m.expect(Kind::read, cached_fd, 3996, 100, 100);
  m.expect(Kind::read, direct_fd, 4096, 8192, 8192);
  m.expect(Kind::read, cached_fd, 12288, 50, 50);
  m.expect_end(8342);
  check::equal(m.transfer.direct_bytes(), 8192);
}

TEST("direct: a middle that ends with the file") {
  Machine m(Kind::read, IoPath::direct, {at(8192, 16384)}, 0);
  m.expect(Kind::read, direct_fd, 0, 16384, 5000);
  m.expect(Kind::read, cached_fd, 5000, 3192, 0);
  m.expect_end(5000);
}

TEST("direct: memory that is not aligned goes through a buffer") {
  std::vector<std::byte> memory(10000);
  const auto odd = (reinterpret_cast<std::uintptr_t>(memory.data()) + 511) / 512 * 512 + 1;
  Machine m(Kind::read, IoPath::direct, {at(odd, 4096)}, 0);
  const Operation* o = m.transfer.next();
  check::equal(o->fd, direct_fd);
  check::is_true(reinterpret_cast<std::uintptr_t>(o->list->iov_base) % 4096 == 0, "aligned");
  std::fill_n(static_cast<std::byte*>(o->list->iov_base), 4096, std::byte(7));
  m.transfer.result(4096);
  m.expect_end(4096);
  const auto* there = reinterpret_cast<const std::byte*>(odd);
  check::is_true(there[0] == std::byte(7) && there[4095] == std::byte(7), "copied to the memory asked for");
}

TEST("direct: a file system that refuses is served through the page cache") {
  Machine m(Kind::write, IoPath::direct, {at(8192, 8192)}, 0);
  m.expect(Kind::write, direct_fd, 0, 8192, -EINVAL);
  m.expect(Kind::write, cached_fd, 0, 8192, 8192);
  m.expect_end(8192);
}

TEST("direct: without a direct descriptor everything is buffered") {
  Machine m(Kind::write, IoPath::direct, {at(8192, 8192)}, 0, {cached_fd, -1, 0, 0});
  m.expect(Kind::write, cached_fd, 0, 8192, 8192);
  m.expect_end(8192);
}

TEST("either: a blocking read takes what is around it along, through memory of ours") {
  std::vector<std::byte> memory(9001);
  Machine m(Kind::read, IoPath::either, {{memory.data() + 1, 9000}}, 5000, target, true);
  m.expect(Kind::resident, cached_fd, 5000, 9000, 0);
  const Operation* o = m.transfer.next();
  check::is_true(o->fd == direct_fd && o->offset == 4096 && o->size_bytes == 12288, "up to the boundaries");
  auto* const ours = static_cast<std::byte*>(o->list->iov_base);
  for (std::size_t i = 0; i < 12288; ++i) ours[i] = std::byte(i % 251);
  m.transfer.result(12288);
  m.expect_end(9000);
  check::is_true(m.transfer.missed(), "it has waited");
  for (std::size_t i = 0; i < 9000; ++i)
    check::is_true(memory[i + 1] == std::byte((i + 5000 - 4096) % 251), "the bytes of the request, in place");
}

TEST("either: a blocking read of much goes piece by piece") {
  std::vector<std::byte> memory(5 << 20);
  Machine m(Kind::read, IoPath::either, {{memory.data(), memory.size()}}, 100, target, true);
  m.expect(Kind::resident, cached_fd, 100, 5 << 20, 0);
  m.expect(Kind::read, direct_fd, 0, 2 << 20, 2 << 20);
  m.expect(Kind::read, direct_fd, 2 << 20, 2 << 20, 2 << 20);
  m.expect(Kind::read, direct_fd, 4 << 20, (1 << 20) + 4096, (1 << 20) + 4096);
  m.expect_end(5 << 20);
}

TEST("either: a blocking read that ends before what it wants lets a plain call tell") {
  std::vector<std::byte> memory(9000);
  Machine m(Kind::read, IoPath::either, {{memory.data(), 9000}}, 5000, target, true);
  m.expect(Kind::resident, cached_fd, 5000, 9000, 0);
  m.expect(Kind::read, direct_fd, 4096, 12288, 512);
  m.expect(Kind::read, cached_fd, 5000, 9000, 0);
  m.expect_end(0);
}

TEST("either: a blocking read ends with the file") {
  std::vector<std::byte> memory(9000);
  Machine m(Kind::read, IoPath::either, {{memory.data(), 9000}}, 5000, target, true);
  m.expect(Kind::resident, cached_fd, 5000, 9000, 0);
  m.expect(Kind::read, direct_fd, 4096, 12288, 2000);
  m.expect(Kind::read, direct_fd, 4096, 12288, 2000);  // from where the first ended
  m.expect(Kind::read, cached_fd, 6096, 7904, 0);
  m.expect_end(1096);
}

TEST("either: what is in the page cache is read from there") {
  Machine m(Kind::read, IoPath::either, {at(8192, 1 << 20)}, 0);
  m.expect(Kind::resident, cached_fd, 0, 1 << 20, 600000);
  m.expect(Kind::read, cached_fd, 0, 1 << 20, 1 << 20);
  m.expect_end(1 << 20);
}

TEST("either: what is not there is read directly") {
  Machine m(Kind::read, IoPath::either, {at(8192, 1 << 20)}, 0);
  m.expect(Kind::resident, cached_fd, 0, 1 << 20, 4096);
  m.expect(Kind::read, direct_fd, 0, 1 << 20, 1 << 20);
  m.expect_end(1 << 20);
}

TEST("either: memory that is not aligned is read through the page cache") {
  Machine m(Kind::read, IoPath::either, {at(8192 + 16, 1 << 20)}, 0);
  m.expect(Kind::resident, cached_fd, 0, 1 << 20, 0);
  m.expect(Kind::read, cached_fd, 0, 1 << 20, 1 << 20);
  m.expect_end(1 << 20);
}

TEST("either: a kernel that cannot tell is asked for what it has") {
  Machine part(Kind::read, IoPath::either, {at(8192, 1 << 20)}, 0);
  part.expect(Kind::resident, cached_fd, 0, 1 << 20, -ENOSYS);
  part.expect(Kind::read, cached_fd, 0, 1 << 20, 8192, true);
  part.expect(Kind::read, direct_fd, 8192, (1 << 20) - 8192, (1 << 20) - 8192);
  part.expect_end(1 << 20);
  Machine none(Kind::read, IoPath::either, {at(8192, 1 << 20)}, 0);
  none.expect(Kind::resident, cached_fd, 0, 1 << 20, -EPERM);
  none.expect(Kind::read, cached_fd, 0, 1 << 20, -EINTR, true);
  none.expect(Kind::read, cached_fd, 0, 1 << 20, -EAGAIN, true);
  none.expect(Kind::read, direct_fd, 0, 1 << 20, 1 << 20);
  none.expect_end(1 << 20);
}

TEST("either: a write goes directly only where nothing is cached") {
  Machine none(Kind::write, IoPath::either, {at(8192, 1 << 20)}, 0);
  none.expect(Kind::resident, cached_fd, 0, 1 << 20, 0);
  none.expect(Kind::write, direct_fd, 0, 1 << 20, 1 << 20);
  none.expect_end(1 << 20);
  Machine some(Kind::write, IoPath::either, {at(8192, 1 << 20)}, 0);
  some.expect(Kind::resident, cached_fd, 0, 1 << 20, 4096);
  some.expect(Kind::write, cached_fd, 0, 1 << 20, 1 << 20);
  some.expect_end(1 << 20);
  Machine unknown(Kind::write, IoPath::either, {at(8192, 1 << 20)}, 0);
  unknown.expect(Kind::resident, cached_fd, 0, 1 << 20, -ENOSYS);
  unknown.expect(Kind::write, direct_fd, 0, 1 << 20, 1 << 20);
  unknown.expect_end(1 << 20);
}

TEST("either: a file system without RWF_NOWAIT is read plainly") {
  Machine m(Kind::read, IoPath::either, {at(8192, 1 << 20)}, 0);
  m.expect(Kind::resident, cached_fd, 0, 1 << 20, -ENOSYS);
  m.expect(Kind::read, cached_fd, 0, 1 << 20, -EOPNOTSUPP, true);
  m.expect(Kind::read, cached_fd, 0, 1 << 20, 1 << 20);
  m.expect_end(1 << 20);
}

TEST("a request beyond what one system call moves is split") {
  Machine m(Kind::read, IoPath::buffered, {at(8192, std::size_t(3) << 30)}, 0);
  for (std::int64_t i = 0; i < 3; ++i) m.expect(Kind::read, cached_fd, i << 30, 1 << 30, 1 << 30);
  m.expect_end(std::int64_t(3) << 30);
}

TEST("lists longer than one system call takes are split, also directly") {
  std::vector<iovec> parts(1500, at(8192, 4096));
  Machine m(Kind::write, IoPath::direct, parts, 0);
  m.expect(Kind::write, direct_fd, 0, 1024 * 4096, 1024 * 4096);
  m.expect(Kind::write, direct_fd, 1024 * 4096, 476 * 4096, 476 * 4096);
  m.expect_end(1500 * 4096);
}

TEST("a scattered read of what is in memory never waits") {
  Machine m(Kind::read, IoPath::scattered, {at(4096, 1000)}, 50);
  m.expect(Kind::read, cached_fd, 50, 1000, 1000, true);
  m.expect_end(1000);
  check::is_true(!m.transfer.missed());
}

TEST("a scattered read that has to wait says so and goes on through the page cache") {
  Machine m(Kind::read, IoPath::scattered, {at(4096, 1000)}, 50);
  m.expect(Kind::read, cached_fd, 50, 1000, -EAGAIN, true);
  m.expect(Kind::read, cached_fd, 50, 1000, 1000);
  m.expect_end(1000);
  check::is_true(m.transfer.missed());
}

TEST("a scattered read of which memory holds the beginning goes on where that ends") {
  Machine m(Kind::read, IoPath::scattered, {at(4096, 1000)}, 50);
  m.expect(Kind::read, cached_fd, 50, 1000, 300, true);
  m.expect(Kind::read, cached_fd, 350, 700, 700);
  m.expect_end(1000);
  check::is_true(m.transfer.missed());
}

TEST("a scattered read where the file system cannot tell is a plain one") {
  Machine m(Kind::read, IoPath::scattered, {at(4096, 1000)}, 50);
  m.expect(Kind::read, cached_fd, 50, 1000, -EOPNOTSUPP, true);
  m.expect(Kind::read, cached_fd, 50, 1000, 1000);
  m.expect_end(1000);
  check::is_true(!m.transfer.missed());
}

TEST_MAIN
