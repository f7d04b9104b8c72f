// The cache of chunks: its content, when it reads and writes, and how it handles errors.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <stdexcept>
#include <thread>

#include "device/fault.hpp"
#include "store/chunk_cache.hpp"
#include "store/component_support.hpp"

using namespace outcore;
using namespace component_support;
using device::Fault;
using device::FaultPlan;
using device::Operation;
using Kind = Operation::Kind;
using support::Scratch;

namespace {

/// A disk that counts its operations, and fails on demand.
struct Disk {
  std::atomic<int> reads{0}, writes{0}, read_bytes{0};
  std::atomic<int> failure{0};  // of writes: errno
  std::atomic<bool> reads_fail{false};
  std::unique_ptr<device::FaultEngine> engine;
  Scratch scratch;

  Disk() {
    FaultPlan plan;
    plan.script = [this](std::uint64_t, const Operation& operation) {
      if (operation.kind == Kind::read) {
        ++reads;
        read_bytes += static_cast<int>(operation.size_bytes);
        return reads_fail ? Fault::io_error : Fault::none;
      }
      if (operation.kind != Kind::write) return Fault::none;
      ++writes;
      return failure == ENOSPC ? Fault::full : failure == EIO ? Fault::io_error : Fault::none;
    };
    engine = device::make_fault_engine(device::make_thread_engine(2), std::move(plan));
  }
  Component create(const Geometry& geometry) {
    return Component::create(scratch.file(), geometry, {.engine = engine.get()});
  }
};

void fill(ChunkCache& cache, std::int64_t slot, int value, bool whole = true) {
  cache.change(slot, whole, [&](std::span<std::byte> chunk) { std::ranges::fill(chunk, std::byte(value)); });
}

int first_byte(ChunkCache& cache, std::int64_t slot) {
  int value = -1;
  cache.look(slot, cache.all_blocks(), [&](std::span<const std::byte> chunk) {
    value = static_cast<int>(chunk.front());
    for (const std::byte each : chunk) check::equal(static_cast<int>(each), value);
  });
  return value;
}

std::int64_t chunks_of(const Geometry& geometry, std::int64_t count) {
  return count * geometry.stride_bytes();
}

}  // namespace

TEST("what is put is read back, whether it is in memory or on disk") {
  for (const CodecOptions& codec : codecs) {
    Disk disk;
    const Geometry geometry = odd(codec);
    Component component = disk.create(geometry);
    ChunkCache cache(component, {.max_bytes = chunks_of(geometry, 6)});
    for (int round = 1; round < 4; ++round) {
      for (int slot = 0; slot < 40; ++slot) fill(cache, slot, slot + round);
      for (int slot = 0; slot < 40; ++slot) check::equal(first_byte(cache, slot), slot + round);
    }
    cache.flush();
    for (int slot = 0; slot < 40; ++slot)
      check::equal(static_cast<int>(*read(component, slot, 1).data()), slot + 3);
  }
}

TEST("a chunk that is set as a whole is not read") {
  Disk disk;
  const Geometry geometry = odd();
  Component component = disk.create(geometry);
  write(component, 0, content(geometry, 4, 1));
  ChunkCache cache(component, {});
  disk.reads = 0;
  fill(cache, 2, 7);
  check::equal(disk.reads.load(), 0);
  fill(cache, 1, 7, false);
  check::is_true(disk.reads > 0, "one that is changed in part is");
  disk.reads = 0;
  check::equal(first_byte(cache, 1), 7);
  check::equal(disk.reads.load(), 0);
}

TEST("what is in memory is not read again, and nothing is written before it must be") {
  Disk disk;
  const Geometry geometry = odd();
  Component component = disk.create(geometry);
  ChunkCache cache(component, {.max_bytes = chunks_of(geometry, 8)});
  for (int i = 0; i < 100; ++i) fill(cache, i % 3, i, false);
  check::equal(disk.writes.load(), 0);
  cache.flush();
  check::equal(disk.writes.load(), 1);  // neighbours together
  cache.flush();
  check::equal(disk.writes.load(), 1);
}

TEST("of a large chunk only blocks that are needed are read, with the holes between near ones") {
  Disk disk;
  Geometry geometry{.slot_bytes = 64 << 10, .slots = 4, .block_bytes = 4096};
  Component component = disk.create(geometry);
  const Buffer data = content(geometry, 4, 5);
  write(component, 0, data);
  ChunkCache cache(component, {});
  const auto expect = [&](std::int64_t slot, const Blocks& blocks) {
    cache.look(slot, blocks, [&](std::span<const std::byte> chunk) {
      for (std::size_t i = 0; i < 16; ++i)
        if (blocks[i])
          support::same(chunk.subspan(i * 4096, 4096), slot_in(geometry, data, slot).subspan(i * 4096, 4096));
    });
  };
  disk.reads = disk.read_bytes = 0;
  Blocks needed;
  cache.add_blocks(needed, 4096 * 2 + 10, 4096 * 3 + 1);
  check::equal(needed.count(), 2U);
  expect(1, needed);
  check::equal(disk.read_bytes.load(), 2 * 4096);
  disk.reads = disk.read_bytes = 0;
  cache.add_blocks(needed, 4096 * 5, 4096 * 6);
  expect(1, needed);
  check::equal(disk.read_bytes.load(), 4096);
  expect(1, needed);
  check::equal(disk.reads.load(), 1);
  Blocks apart;
  cache.add_blocks(apart, 0, 1);
  cache.add_blocks(apart, 4096 * 4, 4096 * 4 + 1);
  disk.reads = 0;
  expect(2, apart);
  check::equal(disk.reads.load(), 1);
  fill(cache, 1, 9, false);
  check::equal(first_byte(cache, 1), 9);
}

TEST("blocks that are far apart are two requests") {
  Disk disk;
  Geometry geometry{.slot_bytes = 256 << 10, .slots = 2, .block_bytes = 4096};
  Component component = disk.create(geometry);
  write(component, 0, content(geometry, 2, 5));
  ChunkCache cache(component, {});
  const auto reads_of = [&](std::int64_t slot, std::int64_t second) {
    Blocks blocks;
    cache.add_blocks(blocks, 0, 1);
    cache.add_blocks(blocks, second, second + 1);
    disk.reads = 0;
    cache.look(slot, blocks, [](std::span<const std::byte>) {});
    return disk.reads.load();
  };
  check::equal(reads_of(0, worth_a_request_bytes + 4096), 1);
  check::equal(reads_of(1, worth_a_request_bytes + 2 * 4096), 2);
}

TEST("a block that is read again with its neighbours, and fails, is not taken for what was there") {
  Disk disk;
  Geometry geometry{.slot_bytes = 64 << 10, .slots = 1, .block_bytes = 4096};
  Component component = disk.create(geometry);
  const Buffer data = content(geometry, 1, 5);
  write(component, 0, data);
  ChunkCache cache(component, {});
  const auto look = [&](std::initializer_list<std::size_t> wanted) {
    Blocks blocks;
    for (const std::size_t each : wanted) blocks.set(each);
    cache.look(0, blocks, [&](std::span<const std::byte> chunk) {
      for (const std::size_t each : wanted)
        support::same(chunk.subspan(each * 4096, 4096),
                      slot_in(geometry, data, 0).subspan(each * 4096, 4096));
    });
  };
  look({3});
  flip_bit(disk.scratch.file(), 3 * 4096 + 7);
  const auto around = [&] { look({2, 4}); };
  check::contains(check::throws<Error>(around).what(), "block 3 of slot 0");
  check::contains(check::throws<Error>([&] { look({3}); }).what(), "block 3 of slot 0");
  flip_bit(disk.scratch.file(), 3 * 4096 + 7);
  look({2, 3, 4});
}

TEST("a chunk that is prefetched is there when it is looked at") {
  Disk disk;
  const Geometry geometry = odd();
  Component component = disk.create(geometry);
  write(component, 0, content(geometry, 10, 1));
  ChunkCache cache(component, {.max_bytes = chunks_of(geometry, 4)});
  for (int slot = 0; slot < 10; ++slot) cache.prefetch(slot, cache.all_blocks());
  for (int slot = 0; slot < 4; ++slot) cache.look(slot, cache.all_blocks(), [](auto) {});
  check::equal(disk.reads.load(), 4);  // no more than there is room for
  cache.look(9, cache.all_blocks(), [](auto) {});
}

TEST("what was looked at goes before what was read ahead") {
  Disk disk;
  const Geometry geometry = odd();
  Component component = disk.create(geometry);
  write(component, 0, content(geometry, 5, 1));
  ChunkCache cache(component, {.max_bytes = chunks_of(geometry, 4)});
  for (const int slot : {0, 1}) cache.prefetch(slot, cache.all_blocks());
  for (const int slot : {2, 3, 4, 0, 1}) cache.look(slot, cache.all_blocks(), [](auto) {});
  check::equal(disk.reads.load(), 5);
}

TEST("memory is accounted for, and given back") {
  Disk disk;
  const Geometry geometry = odd();
  Component component = disk.create(geometry);
  std::int64_t used = 0;
  {
    ChunkCache cache(component, {.max_bytes = chunks_of(geometry, 5), .account = [&](std::int64_t bytes) {
                                   if (used + bytes > chunks_of(geometry, 5))
                                     throw Error(ENOMEM, {.attempted = "memory"});
                                   used += bytes;
                                 }});
    for (int slot = 0; slot < 40; ++slot) fill(cache, slot, slot);
    check::equal(used, chunks_of(geometry, 5));
    const auto all = [](std::int64_t) { return true; };
    const ChunkCache::Pause pause(cache, all, true);
    check::equal(used, 0);
  }
  check::equal(used, 0);
}

TEST("a cache that may have no memory says so, and serves when it may") {
  Disk disk;
  Component component = disk.create(odd());
  bool may = false;
  ChunkCache cache(component, {.account = [&](std::int64_t bytes) {
                     if (!may && bytes > 0) throw Error(ENOMEM, {.attempted = "memory"});
                   }});
  check::equal(check::throws<Error>([&] { fill(cache, 0, 1); }).errno_value(), ENOMEM);
  check::equal(check::throws<Error>([&] { (void)first_byte(cache, 0); }).errno_value(), ENOMEM);
  may = true;
  fill(cache, 0, 1);
  check::equal(first_byte(cache, 0), 1);
}

TEST("a full disk fails the flush, loses nothing, and a later flush succeeds") {
  for (const int failure : {ENOSPC, EIO}) {
    Disk disk;
    const Geometry geometry = odd();
    Component component = disk.create(geometry);
    ChunkCache cache(component, {.max_bytes = chunks_of(geometry, 40)});
    for (int slot = 0; slot < 4; ++slot) fill(cache, slot, slot + 1);
    disk.failure = failure;
    for (int i = 0; i < 2; ++i)
      check::equal(check::throws<Error>([&] { cache.flush(); }).errno_value(), failure);
    for (int slot = 0; slot < 4; ++slot) check::equal(first_byte(cache, slot), slot + 1);
    disk.failure = 0;
    cache.flush();
    for (int slot = 0; slot < 4; ++slot)
      check::equal(static_cast<int>(*read(component, slot, 1).data()), slot + 1);
  }
}

TEST("when the disk is full who needs memory gets the error, and reads go on") {
  Disk disk;
  const Geometry geometry = odd();
  Component component = disk.create(geometry);
  write(component, 20, content(geometry, 10, 3, 0));
  const Buffer expected = read(component, 20, 10);
  ChunkCache cache(component, {.max_bytes = chunks_of(geometry, 8)});
  disk.failure = ENOSPC;
  int accepted = 0;
  const Error error = check::throws<Error>([&] {
    for (int slot = 0; slot < 20; ++slot, ++accepted) fill(cache, slot, slot + 1);
  });
  check::equal(error.errno_value(), ENOSPC);
  check::equal(accepted, 6);  // three quarters
  for (int slot = 20; slot < 30; ++slot)
    cache.look(slot, cache.all_blocks(), [&](std::span<const std::byte> chunk) {
      support::same(chunk, slot_in(geometry, expected, slot - 20));
    });
  for (int slot = 0; slot < accepted; ++slot) check::equal(first_byte(cache, slot), slot + 1);
  disk.failure = 0;
  for (int slot = accepted; slot < 20; ++slot) fill(cache, slot, slot + 1);
  cache.flush();
  for (int slot = 0; slot < 20; ++slot)
    check::equal(static_cast<int>(*read(component, slot, 1).data()), slot + 1);
}

TEST("a read that fails is the error of the one who asked, and can be tried again") {
  Disk disk;
  const Geometry geometry = odd();
  Component component = disk.create(geometry);
  write(component, 0, content(geometry, 2, 3));
  ChunkCache cache(component, {});
  disk.reads_fail = true;
  check::equal(check::throws<Error>([&] { cache.look(0, cache.all_blocks(), [](auto) {}); }).errno_value(),
               EIO);
  check::equal(check::throws<Error>([&] { fill(cache, 1, 3, false); }).errno_value(), EIO);
  cache.prefetch(1, cache.all_blocks());
  disk.reads_fail = false;
  try {
    cache.look(1, cache.all_blocks(), [](auto) {});
  } catch (const Error&) {  // that of the prefetch
  }
  fill(cache, 1, 3, false);
  check::equal(first_byte(cache, 1), 3);
}

TEST("while it is paused the component holds what was put, and others wait") {
  Disk disk;
  const Geometry geometry = odd();
  Component component = disk.create(geometry);
  ChunkCache cache(component, {});
  fill(cache, 1, 1);
  fill(cache, 2, 2);
  std::atomic<bool> entered{false};
  std::thread other;
  {
    const auto one = [](std::int64_t slot) { return slot == 1; };
    const ChunkCache::Pause pause(cache, one, true);
    check::equal(disk.writes.load(), 1);
    check::equal(static_cast<int>(*read(component, 1, 1).data()), 1);
    other = std::thread([&] {
      check::equal(first_byte(cache, 1), 5);
      entered = true;
    });
    Buffer changed(static_cast<std::size_t>(geometry.stride_bytes()));
    std::ranges::fill(changed.span(), std::byte{5});
    write(component, 1, changed);
    check::is_true(!entered);
  }
  other.join();
  check::is_true(entered);
  check::equal(first_byte(cache, 2), 2);
}

TEST("a prefetch during a pause returns at once, though the pause waits for the disk") {
  Disk disk;
  std::promise<void> let_go;
  const auto held = let_go.get_future().share();
  FaultPlan plan;
  plan.script = [&](std::uint64_t, const Operation& operation) {
    if (operation.kind == Kind::read) held.wait();
    return Fault::none;
  };
  disk.engine = device::make_fault_engine(device::make_thread_engine(2), std::move(plan));
  const Geometry geometry = odd();
  Component component = disk.create(geometry);
  ChunkCache writer(component, {.max_bytes = chunks_of(geometry, 6)});
  for (int slot = 0; slot < 3; ++slot) fill(writer, slot, slot + 1);
  writer.flush();

  ChunkCache cache(component, {.max_bytes = chunks_of(geometry, 6)});
  cache.prefetch(0, cache.all_blocks());
  std::thread pausing([&] { const ChunkCache::Pause pause(cache, [](std::int64_t) { return true; }, true); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it waits for what is being read
  auto prefetched = std::async(std::launch::async, [&] { cache.prefetch(1, cache.all_blocks()); });
  const auto status = prefetched.wait_for(std::chrono::seconds(20));
  let_go.set_value();
  pausing.join();
  check::is_true(status == std::future_status::ready, "the prefetch waited for the pause");
  check::equal(first_byte(cache, 1), 2);
}

TEST("a visitor that throws leaves the chunk free, with what is known of it") {
  Disk disk;
  const Geometry geometry = odd();
  Component component = disk.create(geometry);
  ChunkCache cache(component, {.max_bytes = chunks_of(geometry, 4)});
  const auto fail_after = [&](std::int64_t slot, bool whole, int value) {
    const auto error = check::throws<std::runtime_error>([&] {
      cache.change(slot, whole, [&](std::span<std::byte> chunk) {
        chunk.front() = std::byte(value);
        throw std::runtime_error("of the visitor");
      });
    });
    check::equal(error.what(), std::string("of the visitor"));
  };
  const auto front = [&](std::int64_t slot) {
    int value = -1;
    cache.look(slot, cache.all_blocks(),
               [&](std::span<const std::byte> chunk) { value = int(chunk.front()); });
    return value;
  };
  fill(cache, 0, 7);
  fail_after(0, false, 9);
  check::equal(front(0), 9);
  cache.flush();
  check::equal(static_cast<int>(*read(component, 0, 1).data()), 9);

  fail_after(1, true, 5);  // nothing was known of it: it is what the disk has
  check::equal(front(1), 0);
  for (int slot = 0; slot < 12; ++slot) fill(cache, slot, slot + 1);  // no chunk is lost to the failures
  cache.flush();
  for (int slot = 0; slot < 12; ++slot) check::equal(first_byte(cache, slot), slot + 1);
}

TEST("a pause is extended to more chunks, but not while somebody waits for its end") {
  const Geometry geometry = odd();
  Disk disk;
  Component component = disk.create(geometry);
  ChunkCache cache(component, {});
  for (const int slot : {1, 3, 5}) fill(cache, slot, slot);  // no neighbours, which are written together
  const auto only = [](std::int64_t wanted) {
    return [wanted](std::int64_t slot) { return slot == wanted; };
  };
  std::thread other;
  {
    ChunkCache::Pause pause(cache, only(1), false);
    check::equal(disk.writes.load(), 1);
    check::is_true(pause.extend(only(3)));
    check::equal(disk.writes.load(), 2);
    check::equal(static_cast<int>(*read(component, 3, 1).data()), 3);
    other = std::thread([&] { check::equal(first_byte(cache, 1), 1); });
    while (pause.extend(only(1))) std::this_thread::yield();  // until the other is there
    check::is_true(!pause.extend(only(5)));
    check::equal(disk.writes.load(), 2);
  }
  other.join();
}

TEST("threads that add to the same chunks lose nothing") {
  for (const std::int64_t chunks : {2, 5, 100}) {
    Disk disk;
    const Geometry geometry = odd();
    Component component = disk.create(geometry);
    ChunkCache cache(component, {.max_bytes = chunks_of(geometry, chunks)});
    constexpr int threads = 4, rounds = 200;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        std::mt19937 random(static_cast<unsigned>(t));
        for (int i = 0; i < rounds; ++i) {
          const auto slot = static_cast<std::int64_t>(random() % 8);
          if (random() % 4 == 0) cache.prefetch(static_cast<std::int64_t>(random() % 8), cache.all_blocks());
          if (random() % 50 == 0) cache.flush();
          cache.change(slot, false, [](std::span<std::byte> chunk) {
            std::int64_t value = 0;
            std::memcpy(&value, chunk.data(), sizeof value);
            ++value;
            std::memcpy(chunk.data(), &value, sizeof value);
          });
        }
      });
    for (std::thread& each : all) each.join();
    std::int64_t sum = 0;
    for (int slot = 0; slot < 8; ++slot)
      cache.look(slot, cache.all_blocks(), [&](std::span<const std::byte> chunk) {
        std::int64_t value = 0;
        std::memcpy(&value, chunk.data(), sizeof value);
        sum += value;
      });
    check::equal(sum, threads * rounds);
  }
}

TEST_MAIN
