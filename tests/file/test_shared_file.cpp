// Shared files of worlds of threads, against plain memory.
#include <algorithm>
#include <cerrno>
#include <random>
#include <string>
#include <vector>

#include "device/fault.hpp"
#include "dio/stripes/striped_file.hpp"
#include "file/shared_support.hpp"
#include "outcore/trace.hpp"

using namespace shared;

namespace {

std::int64_t up_to(std::mt19937_64& random, std::int64_t limit) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit + 1));
}

void same(const Bytes& actual, std::span<const std::byte> expected,
          std::source_location at = std::source_location::current()) {
  check::equal(actual.size(), expected.size(), at);
  const auto different = std::mismatch(actual.begin(), actual.end(), expected.begin()).first;
  if (different != actual.end())
    check::fail("byte " + std::to_string(different - actual.begin()) + " differs", at);
}

/// What each process writes in a round: ranges that do not overlap. The same at all processes, from the seed.
struct Round {
  struct Written {
    int process;
    std::int64_t offset;
    Bytes bytes;
  };
  std::vector<Written> writes;

  Round(std::mt19937_64& random, int processes, std::int64_t most) {
    std::int64_t offset = up_to(random, most / 4);
    for (int k = 0; k < 3 * processes; ++k) {
      const std::int64_t size = random() % 4 == 0 ? up_to(random, most / 8) : up_to(random, 5000);
      writes.push_back({static_cast<int>(random() % static_cast<std::uint64_t>(processes)), offset,
                        pattern(static_cast<std::size_t>(size), static_cast<unsigned>(random()))});
      offset += size + (random() % 2 == 0 ? 0 : up_to(random, 20'000));
    }
  }
};

}  // namespace

namespace {

/// If processes keep copies of other parts, each calls sync before it reads.
void compare_with_a_byte_array(std::int64_t client_cache_bytes) {
  run_all([=](World& world) {
    SharedFile file(world, "model",
                    local({.typical_request_bytes = 4096, .client_cache_bytes = client_cache_bytes}));
    Bytes model;
    std::mt19937_64 together(7), alone(static_cast<unsigned>(world.rank()));
    for (int turn = 0; turn < 25; ++turn) {
      const Round round(together, world.size(), 400'000);
      std::vector<Request> requests;
      std::vector<SharedFile::WriteRange> ranges;
      for (const auto& each : round.writes) {
        const auto end = each.bytes.empty() ? 0 : static_cast<std::size_t>(each.offset) + each.bytes.size();
        if (end > model.size()) model.resize(end);
        std::ranges::copy(each.bytes,
                          model.begin() + std::min<std::ptrdiff_t>(each.offset, std::ssize(model)));
        if (each.process != world.rank()) continue;
        if (turn % 3 == 0)
          file.write(each.bytes, each.offset);
        else if (turn % 3 == 1)
          requests.push_back(file.write_async(each.bytes, each.offset));
        else
          ranges.push_back({each.offset, each.bytes});
      }
      requests.push_back(file.write_async(ranges));
      wait_all(requests);
      world.barrier();
      if (client_cache_bytes > 0) file.sync();
      check::equal(file.length(), std::ssize(model));
      std::vector<Bytes> found;
      std::vector<SharedFile::ReadRange> wanted;
      found.reserve(20);
      for (int k = 0; k < 20; ++k) {
        const std::int64_t offset = up_to(alone, std::ssize(model));
        const std::int64_t most = std::ssize(model) - offset;
        found.emplace_back(
            static_cast<std::size_t>(up_to(alone, k % 5 == 0 ? most : std::min<std::int64_t>(most, 3000))),
            std::byte{0xEE});
        wanted.push_back({offset, found.back()});
      }
      if (turn % 2 == 0)
        file.read_async(wanted).wait();
      else
        for (const auto& each : wanted) file.read(each.memory, each.offset);
      for (std::size_t k = 0; k < found.size(); ++k)
        same(found[k], std::span(model).subspan(static_cast<std::size_t>(wanted[k].offset), found[k].size()));
      world.barrier();
    }
    file.close();
  });
}

}  // namespace

TEST("random reads and writes of all processes are those of a byte array") {
  compare_with_a_byte_array(0);
}

TEST("so they are with copies, also with too few of them") {
  compare_with_a_byte_array(1 << 20);
  compare_with_a_byte_array(3 * (64 << 10));
}

TEST("what one process writes the others read when it has said so") {
  run_all([](World& world) {
    SharedFile file(world, "round-robin", local());
    constexpr std::int64_t size = 40'000;
    const auto of = [](std::int64_t k) { return pattern(size, static_cast<unsigned>(k)); };
    for (std::int64_t k = world.rank(); k < 20; k += world.size()) file.write(of(k), k * size);
    world.barrier();
    for (std::int64_t k = 0; k < 20; ++k) same(shared::read_back(file, k * size, size), of(k));
    file.close();
  });
}

TEST("each byte that one process adds the others can read, and none beyond") {
  run_all([](World& world) {
    SharedFile file(world, "growing", local());
    for (std::int64_t k = 0; k < 12; ++k) {
      if (k % world.size() == world.rank()) file.write(pattern(1, static_cast<unsigned>(k)), k);
      world.barrier();
      same(shared::read_back(file, k, 1), pattern(1, static_cast<unsigned>(k)));
      check::equal(check::throws<Error>([&] { shared::read_back(file, k, 2); }).errno_value(), EINVAL);
      world.barrier();
    }
    file.close();
  });
}

TEST("copies of what others keep are used until sync, and see the writes of their own process") {
  run(2, true, [](World& world) {
    SharedFile file(world, "copies",
                    local({.typical_request_bytes = 16 << 10, .client_cache_bytes = 8 << 20}));
    constexpr std::int64_t size = 300'000;
    const Bytes first = pattern(size, 1), second = pattern(size, 2), part = pattern(1000, 3);
    if (world.rank() == 0) file.write(first, 0);
    world.barrier();
    same(shared::read_back(file, 0, size), first);
    world.barrier();
    if (world.rank() == 1) file.write(second, 0);
    world.barrier();
    if (world.rank() == 0) {
      const Bytes found = shared::read_back(file, 0, size);
      const std::int64_t stripe = file.stored().stripes().stripe_bytes();
      const auto there = static_cast<std::size_t>(stripe);
      check::is_true(found[0] == second[0] && found[1] == second[1], "what lies here is new");
      check::is_true(std::equal(found.begin() + stripe, found.begin() + 2 * stripe, first.begin() + stripe),
                     "what lies there is a copy");
      check::is_true(first[there] != second[there], "they differ");
      file.write(part, stripe + 50);
      same(shared::read_back(file, stripe + 50, 1000), part);
    }
    file.sync();
    world.barrier();
    Bytes expected = second;
    std::ranges::copy(part, expected.begin() + file.stored().stripes().stripe_bytes() + 50);
    same(shared::read_back(file, 0, size), expected);
    file.close();
  });
}

TEST("a budget without room for copies only makes reads slower") {
  run(2, true, [](World& world) {
    SharedFile file(world, "no room", local({.client_cache_bytes = std::int64_t{1} << 40}));
    const std::int64_t others = world.budget().limit_bytes() - world.budget().used_bytes() - 100'000;
    world.budget().reserve(others, "test");
    constexpr std::int64_t size = 2'000'000;
    if (world.rank() == 0) file.write(pattern(size), 0);
    world.barrier();
    for (int i = 0; i < 2; ++i) same(shared::read_back(file, 0, size), pattern(size));
    world.budget().release(others);
    file.close();
  });
}

TEST("gaps are zeros, wherever they lie") {
  run_all([](World& world) {
    SharedFile file(world, "gaps", local({.typical_request_bytes = 16 << 10}));
    constexpr std::int64_t far = 3'000'000;
    if (world.rank() == world.size() - 1) file.write(pattern(10, 1), far);
    world.barrier();
    check::equal(file.length(), far + 10);
    same(shared::read_back(file, 0, far), Bytes(far));
    same(shared::read_back(file, far, 10), pattern(10, 1));
    file.close();
  });
}

TEST("files beyond 4 GiB have 64-bit offsets") {
  run(2, true, [](World& world) {
    SharedFile file(world, "far", local());
    const std::int64_t far = (std::int64_t{1} << 36) + 12'345 + world.rank() * 100'000;
    file.write(pattern(50'000, 3), far);
    same(shared::read_back(file, far, 50'000), pattern(50'000, 3));
    file.close();
  });
}

TEST("reading beyond the end is an error that names offset, size and end") {
  run(2, true, [](World& world) {
    SharedFile file(world, "end", local());
    Bytes buffer(100);
    check::equal(check::throws<Error>([&] { file.read(buffer, 0); }).errno_value(), EINVAL);
    world.barrier();
    if (world.rank() == 0) file.write(pattern(1000), 0);
    world.barrier();
    file.read(buffer, 900);
    const auto error = check::throws<Error>([&] { (void)file.read_async(buffer, 950); });
    check::equal(error.errno_value(), EINVAL);
    check::contains(error.what(), "100 bytes at offset 950");
    check::contains(error.what(), "ends at 1000");
    file.close();
  });
}

TEST("writing beyond the hard limit is an error, and changes nothing") {
  run(2, true, [](World& world) {
    SharedFile file(world, "limit", local({.hard_limit_bytes = 1000}));
    const auto error = check::throws<Error>([&] { file.write(pattern(11), 990); });
    check::equal(error.errno_value(), EFBIG);
    check::contains(error.what(), "hard limit is 1000");
    check::equal(file.length(), 0);
    world.barrier();
    file.write(pattern(10), 990);
    file.close();
  });
}

TEST("offsets and sizes out of range are errors") {
  run(2, true, [](World& world) {
    SharedFile file(world, "range", local());
    Bytes buffer(10);
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t offset : {std::int64_t{-1}, most, most - 5}) {
      check::equal(check::throws<Error>([&] { file.write(buffer, offset); }).errno_value(), EINVAL);
      check::equal(check::throws<Error>([&] { file.read(buffer, offset); }).errno_value(), EINVAL);
    }
    check::equal(file.length(), 0);
    file.read(std::span<std::byte>{}, 0);
    file.write(std::span<const std::byte>{}, 1000);
    check::equal(file.length(), 0);
    file.close();
  });
}

TEST("hints that make no sense, or differ, are refused at all processes") {
  run(2, true, [](World& world) {
    const auto refused = [&](const std::string& name, const SharedFileOptions& options) {
      return check::throws<Error>([&] { SharedFile(world, name, options); }).errno_value();
    };
    check::equal(refused("", {}), EINVAL);
    check::equal(refused("x", {.hard_limit_bytes = -1}), EINVAL);
    check::equal(refused("x", {.hard_limit_bytes = 10, .soft_limit_bytes = 11}), EINVAL);
    check::equal(refused("x", {.typical_request_bytes = world.rank() == 1 ? -1 : 0}), EINVAL);
    check::equal(refused("x", {.hard_limit_bytes = 100 + world.rank()}), EINVAL);
    check::equal(refused("x", {.typical_request_bytes = 4096 << world.rank()}), EINVAL);
    check::equal(refused("x", {.soft_limit_bytes = std::int64_t{1} << 60}), ENOSPC);
    SharedFile file(world, "x", {.soft_limit_bytes = 1 << 20, .reserve = true});
    file.close();
  });
}

TEST("placement is shared where all see the directory of the first") {
  run(2, true, [](World& world) {
    SharedFile file(world, "seen");
    check::is_true(file.stored().placement() == Placement::shared);
    for (int c = 0; c < file.stored().stripes().components(); ++c) check::is_true(file.stored().reachable(c));
    SharedFile apart(world, "apart", local());
    for (int c = 0; c < apart.stored().stripes().components(); ++c)
      check::equal(apart.stored().reachable(c), apart.stored().owner(c) == world.rank());
    apart.close();
    file.close();
  });
}

TEST("a file has no name once all have opened it, and lets its space go") {
  run(2, true, [](World& world) {
    SharedFile file(world, "nameless", local());
    file.write(pattern(100), 0);
    for (const auto& entry : std::filesystem::directory_iterator(file.stored().directory()))
      check::equal(entry.path().filename().string(), std::string("lock"));
    file.close();
  });
}

TEST("a closed file refuses, closing again is nothing") {
  run(2, true, [](World& world) {
    SharedFile file(world, "closed", local());
    file.close();
    file.close();
    check::is_true(file.closed());
    Bytes buffer(1);
    check::equal(check::throws<Error>([&] { file.write(buffer, 0); }).errno_value(), EBADF);
    check::equal(check::throws<Error>([&] { (void)file.length(); }).errno_value(), EBADF);
    check::equal(check::throws<Error>([&] { file.sync(); }).errno_value(), EBADF);
    check::equal(check::throws<Error>([&] { file.flush(); }).errno_value(), EBADF);
  });
}

TEST("a file that one process has let go serves the others") {
  run(2, true, [](World& world) {
    auto file = std::make_unique<SharedFile>(world, "kept", local());
    const Bytes bytes = pattern(300'000);
    if (world.rank() == 0) file->write(bytes, 0);
    world.barrier();
    if (world.rank() == 0) file.reset();
    world.barrier();
    if (world.rank() == 1) same(shared::read_back(*file, 0, std::ssize(bytes)), bytes);
    world.barrier();
  });
}

TEST("large requests are whole, and others are served meanwhile") {
  run(2, true, [](World& world) {
    SharedFile file(world, "large", local({.typical_request_bytes = 1 << 20}));
    const Bytes bytes = pattern(20'000'003, static_cast<unsigned>(world.rank()));
    const std::int64_t offset = world.rank() * std::ssize(bytes);
    auto request = file.write_async(bytes, offset);
    check::equal(request.wait(), std::ssize(bytes));
    same(shared::read_back(file, offset, std::ssize(bytes)), bytes);
    file.flush();
    check::equal(file.length(), 2 * std::ssize(bytes));
    file.close();
  });
}

TEST("strided lists are one request") {
  run(3, true, [](World& world) {
    SharedFile file(world, "strided", local({.typical_request_bytes = 8192}));
    const Bytes bytes = pattern(300'000);
    if (world.rank() == 0) file.write(bytes, 0);
    world.barrier();
    Bytes column(300 * 8);
    std::vector<SharedFile::ReadRange> ranges;
    for (std::int64_t k = 0; k < 300; ++k)
      ranges.push_back(
          {k * 1000 + world.rank() * 8, std::span(column).subspan(static_cast<std::size_t>(k) * 8, 8)});
    file.read_async(ranges).wait();
    for (std::size_t k = 0; k < column.size(); ++k)
      check::is_true(column[k] == bytes[k / 8 * 1000 + static_cast<std::size_t>(world.rank()) * 8 + k % 8]);
    world.barrier();
    // Columns of three processes interleave: none touches what the others write.
    std::vector<SharedFile::WriteRange> mine;
    const Bytes row = pattern(8, static_cast<unsigned>(world.rank()));
    for (std::int64_t k = 0; k < 300; ++k) mine.push_back({k * 24 + world.rank() * 8, row});
    file.write(mine);
    world.barrier();
    for (int process = 0; process < 3; ++process)
      same(shared::read_back(file, 299 * 24 + process * 8, 8), pattern(8, static_cast<unsigned>(process)));
    file.close();
  });
}

TEST("a full disk at an owner is an error where it was asked, and the owner serves on") {
  run(2, true, [](World& world) {
    const auto engine = device::make_fault_engine(
        device::make_thread_engine(1), {.script = [](std::uint64_t, const device::Operation& operation) {
          const bool write = operation.kind == device::Operation::Kind::write;
          return write && operation.offset < 4096 ? device::Fault::full : device::Fault::none;
        }});
    SharedFile file(world, "full", local({.typical_request_bytes = 64 << 10, .engine = engine.get()}));
    if (world.rank() == 0) {  // stripe 1 lies at process 1
      const Bytes bytes = pattern(5000);
      const auto error = check::throws<Error>([&] { file.write(bytes, 64 << 10); });
      check::equal(error.errno_value(), ENOSPC);
      check::equal(error.rank(), 1);
      file.write(bytes, (64 << 10) + 8192);
      same(shared::read_back(file, (64 << 10) + 8192, 5000), bytes);
    }
    world.barrier();
    file.close();
  });
}

TEST("an error of the disk of an owner is thrown by wait, or by sync if nobody waits, and once") {
  run(2, true, [](World& world) {
    const auto engine = device::make_fault_engine(
        device::make_thread_engine(1), {.script = [](std::uint64_t, const device::Operation& operation) {
          return operation.offset < 4096 && operation.kind != device::Operation::Kind::sync
                     ? device::Fault::io_error
                     : device::Fault::none;
        }});
    SharedFile file(world, "broken", local({.engine = engine.get()}));
    if (world.rank() == 0) {
      const Bytes bytes = pattern(100);
      for (const std::int64_t offset : {0, 64 << 10}) {  // here, and at process 1
        auto request = file.write_async(bytes, offset);
        check::equal(check::throws<Error>([&] { request.wait(); }).errno_value(), EIO);
        file.sync();
        (void)file.write_async(bytes, offset);
        check::equal(check::throws<Error>([&] { file.sync(); }).errno_value(), EIO);
        file.sync();
      }
      file.write(bytes, 200'000);
      Bytes back(100);
      check::equal(check::throws<Error>([&] { file.read(back, 64 << 10); }).errno_value(), EIO);
      file.read(back, 200'000);
      same(back, bytes);
    }
    world.barrier();
    file.close();
  });
}

TEST("the trace tells how long a request was waited for, here and elsewhere") {
  run(2, true, [](World& world) {
    constexpr std::uint64_t slow_ns = 30'000'000;
    const auto engine = device::make_fault_engine(
        device::make_thread_engine(1),
        {.slow_ns = slow_ns, .script = [](std::uint64_t, const device::Operation& operation) {
           return operation.kind == device::Operation::Kind::read ? device::Fault::slow : device::Fault::none;
         }});
    SharedFile file(world, "slow", local({.engine = engine.get()}));
    if (world.rank() == 0) {
      const Bytes bytes = pattern(100);
      const auto waited_ns = [] {
        const auto counters = trace::snapshot().counters[std::size_t(trace::Layer::file)];
        return counters[std::size_t(trace::Op::read_async)].waited_ns;
      };
      for (const std::int64_t offset : {0, 64 << 10}) {  // here, and at process 1
        file.write(bytes, offset);
        Bytes back(100);
        const auto before = waited_ns();
        file.read_async(back, offset).wait();
        check::is_true(waited_ns() - before > slow_ns / 2);
      }
    }
    world.barrier();
    file.close();
  });
}

TEST("the error of a write that nobody waited for is thrown by close, at all processes") {
  run(2, true, [](World& world) {
    const auto engine = device::make_fault_engine(device::make_thread_engine(1), {.io_error = 1});
    SharedFile file(world, "lost", local({.engine = engine.get()}));
    const Bytes bytes = pattern(100);
    if (world.rank() == 0) (void)file.write_async(bytes, 64 << 10);
    check::equal(check::throws<Error>([&] { file.close(); }).errno_value(), EIO);
    SharedFile unwanted(world, "unwanted", local({.engine = engine.get()}));
    (void)unwanted.write_async(bytes, 64 << 10);
    unwanted.destroy();
  });
}

TEST("a million small requests are outstanding, in waves") {
  run(2, true, [](World& world) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    constexpr std::int64_t count = 20'000;
#else
    constexpr std::int64_t count = 1'000'000;  // of each process, to either
#endif
    constexpr std::int64_t wave = count / 10;
    constexpr std::int64_t size = 64;
    SharedFile file(world, "many", local({.typical_request_bytes = 4096}));
    const Bytes bytes = pattern(static_cast<std::size_t>(wave * size), static_cast<unsigned>(world.rank()));
    for (std::int64_t first = 0; first < count; first += wave) {
      std::vector<Request> requests;
      for (std::int64_t k = 0; k < wave; ++k)
        requests.push_back(
            file.write_async(std::span(bytes).subspan(static_cast<std::size_t>(k * size), size),
                             ((first + k) * world.size() + world.rank()) * size));
      wait_all(requests);
    }
    for (std::int64_t first = 0; first < count; first += wave) {
      std::vector<Request> requests;
      Bytes back(bytes.size());
      for (std::int64_t k = 0; k < wave; ++k)
        requests.push_back(file.read_async(std::span(back).subspan(static_cast<std::size_t>(k * size), size),
                                           ((first + k) * world.size() + world.rank()) * size));
      wait_all(requests);
      same(back, bytes);
    }
    file.close();
  });
}

TEST_MAIN
