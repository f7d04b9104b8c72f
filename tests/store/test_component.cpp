// Components: reads return what was written, go in large pieces, and data takes no more space than it needs.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <map>
#include <thread>

#include "device/fault.hpp"
#include "store/component_support.hpp"

using namespace outcore;
using namespace component_support;
using device::Operation;
using support::Scratch;

namespace {

std::int64_t space_of(const std::string& path) {
  struct stat about{};
  check::equal(stat(path.c_str(), &about), 0);
  return about.st_blocks * 512;
}

/// Counts the operations of the device.
struct Counting {
  std::atomic<std::int64_t> reads{0}, writes{0}, read_bytes{0};
  std::unique_ptr<device::FaultEngine> engine =
      device::make_fault_engine(device::make_thread_engine(2), {.script = [this](auto, const Operation& o) {
                                  reads += o.kind == Operation::Kind::read;
                                  writes += o.kind == Operation::Kind::write;
                                  if (o.kind == Operation::Kind::read) read_bytes += o.size_bytes;
                                  return device::Fault::none;
                                }});
};

/// 64 slots of 128 KiB.
Geometry large() {
  return {.slot_bytes = 128 << 10, .slots = 64};
}

/// A component under random use, and its expected content.
class Model {
 public:
  Model(const Geometry& geometry, std::uint64_t seed)
      : geometry_(geometry),
        random_(seed),
        component_(Component::create(scratch_.file(), geometry)),
        table_(component_.encode_table()) {}

  void step() {
    switch (random_() % 10) {
      case 0:
        return commit();
      case 1:
        return reopen();
      case 2:
      case 3:
      case 4:
        return write_some();
      case 5:
        return read_part();
      default:
        return read_some();
    }
  }

 private:
  using Slots = std::map<std::int64_t, std::vector<std::byte>>;

  std::int64_t upto(std::int64_t most) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most + 1));
  }
  void commit() {
    if (random_() % 8 == 0) component_.flush();
    table_ = component_.encode_table();
    component_.committed();
    committed_ = slots_;
  }
  /// Reopens the component, which loses everything that was not committed. Without shadow copies such writes
  /// have overwritten the committed data: commit first.
  void reopen() {
    if (!geometry_.shadow) commit();
    component_.close();
    component_ = Component::open(scratch_.file(), SlotTable::decode(table_, "table"));
    if (random_() % 2) component_.release_unused();
    slots_ = committed_;
  }
  /// Several requests under way, on ranges that do not overlap.
  void write_some() {
    std::vector<Buffer> buffers;
    std::vector<Request> requests;
    std::int64_t next = upto(geometry_.slots / 2);
    while (next < geometry_.slots && requests.size() < 4) {
      const std::int64_t count = upto(std::min<std::int64_t>(9, geometry_.slots - next));
      buffers.push_back(content(geometry_, count, random_()));
      requests.push_back(component_.write_async(next, count, buffers.back().span()));
      for (std::int64_t i = 0; i < count; ++i) {
        const auto bytes = slot_in(geometry_, buffers.back(), i);
        slots_[next + i].assign(bytes.begin(), bytes.end());
      }
      next += count + upto(5);
    }
    for (auto& request : requests) request.wait();
  }
  [[nodiscard]] std::vector<std::byte> expected(std::int64_t slot) const {
    const auto found = slots_.find(slot);
    return found == slots_.end() ? std::vector<std::byte>(static_cast<std::size_t>(geometry_.slot_bytes))
                                 : found->second;
  }
  void read_some() {
    const std::int64_t first = upto(geometry_.slots), count = upto(geometry_.slots - first);
    const Buffer back = read(component_, first, count);
    for (std::int64_t i = 0; i < count; ++i) support::same(slot_in(geometry_, back, i), expected(first + i));
  }
  void read_part() {
    const std::int64_t slot = upto(geometry_.slots - 1), first = upto(geometry_.blocks() - 1);
    const std::int64_t count = 1 + upto(geometry_.blocks() - first - 1);
    const Buffer back(static_cast<std::size_t>(geometry_.stride_bytes()));
    component_.read_blocks_async(slot, first, count, back.span()).wait();
    const auto begin = static_cast<std::size_t>(first * geometry_.block_bytes);
    const auto end =
        static_cast<std::size_t>(std::min((first + count) * geometry_.block_bytes, geometry_.slot_bytes));
    const auto all = expected(slot);
    support::same(back.span().subspan(begin, end - begin), std::span(all).subspan(begin, end - begin));
  }

  Geometry geometry_;
  std::mt19937_64 random_;
  Scratch scratch_;
  Component component_;
  std::vector<std::byte> table_;
  Slots slots_, committed_;
};

}  // namespace

TEST("any order of writes, reads, commits and reopenings gives what was written") {
  for (const CodecOptions& codec : codecs) {
    for (const bool shadow : {false, true}) {
      for (std::uint64_t seed = 0; seed < 6; ++seed) {
        Geometry geometry = odd(codec, shadow);
        if (seed % 3 == 1) geometry.slot_bytes = 4 * geometry.block_bytes;
        if (seed % 3 == 2) geometry.slot_bytes = 100;
        Model model(geometry, seed);
        for (int i = 0; i < 60; ++i) model.step();
      }
    }
  }
}

TEST("slots that were never written read as zeros, without I/O") {
  Counting counting;
  const Scratch scratch;
  const Component component = Component::create(scratch.file(), odd(), {.engine = counting.engine.get()});
  const Buffer zeros = read(component, 3, 7);
  for (const std::byte each : zeros.span()) check::is_true(each == std::byte{0});
  check::equal(counting.reads.load(), 0);
}

TEST("consecutive slots are written and read in large pieces") {
  Counting counting;
  const Scratch scratch;
  Component component = Component::create(scratch.file(), large(), {.engine = counting.engine.get()});
  const Buffer data = content(large(), 64, 1);
  write(component, 0, data);
  check::equal(counting.writes.load(), 2);  // 4 MiB each
  same_slots(large(), read(component, 0, 64), data);
  check::equal(counting.reads.load(), 2);
}

TEST("a read around slots that were never written moves only those that were") {
  Counting counting;
  const Scratch scratch;
  Component component = Component::create(scratch.file(), large(), {.engine = counting.engine.get()});
  write(component, 3, content(large(), 2, 1));
  write(component, 9, content(large(), 1, 1));
  static_cast<void>(read(component, 0, 64));
  check::equal(counting.reads.load(), 2);
  check::equal(counting.read_bytes.load(), 3 * (128 << 10));
}

TEST("reading blocks of a slot moves these, no more") {
  Counting counting;
  const Scratch scratch;
  const Geometry geometry{.slot_bytes = 1 << 20, .slots = 4, .block_bytes = 64 << 10};
  Component component = Component::create(scratch.file(), geometry, {.engine = counting.engine.get()});
  const Buffer data = content(geometry, 4, 1);
  write(component, 0, data);
  const Buffer back(1 << 20);
  component.read_blocks_async(2, 3, 2, back.span()).wait();
  support::same(back.span().subspan(192 << 10, 128 << 10),
                slot_in(geometry, data, 2).subspan(192 << 10, 128 << 10));
  check::equal(counting.read_bytes.load(), 128 << 10);
}

TEST("blocks of a slot that was never written are zeros, and the memory of others stays") {
  const Scratch scratch;
  const Geometry geometry{.slot_bytes = 1 << 20, .slots = 4, .block_bytes = 64 << 10};
  Component component = Component::create(scratch.file(), geometry);
  const Buffer back(1 << 20);
  std::ranges::fill(back.span(), std::byte{7});
  component.read_blocks_async(2, 3, 2, back.span()).wait();
  for (std::size_t i = 0; i < back.size(); ++i)
    check::equal(int(back.span()[i]), i / (64 << 10) == 3 || i / (64 << 10) == 4 ? 0 : 7);
}

TEST("memory that is not aligned is as good, but for speed") {
  const Scratch scratch;
  const Geometry geometry = odd();
  Component component = Component::create(scratch.file(), geometry);
  const Buffer data = content(geometry, 5, 1);
  std::vector<std::byte> memory(data.size() + 1);
  std::ranges::copy(data.span(), memory.begin() + 1);
  component.write_async(1, 5, std::span(memory).subspan(1)).wait();
  std::ranges::fill(memory, std::byte{7});
  component.read_async(1, 5, std::span(memory).subspan(1)).wait();
  for (std::int64_t slot = 0; slot < 5; ++slot)
    support::same(std::span(memory).subspan(static_cast<std::size_t>(1 + slot * geometry.stride_bytes()),
                                            static_cast<std::size_t>(geometry.slot_bytes)),
                  slot_in(geometry, data, slot));
}

TEST("every way through or past the page cache, on every engine") {
  for (const auto page_cache :
       {device::PageCache::direct, device::PageCache::buffered, device::PageCache::automatic}) {
    const auto threads = device::make_thread_engine(2);
    for (device::Engine* engine : {threads.get(), &device::default_engine()}) {
      const Scratch scratch;
      const Geometry geometry = odd(blosc2_for(8));
      Component component =
          Component::create(scratch.file(), geometry, {.page_cache = page_cache, .engine = engine});
      const Buffer data = content(geometry, 40, 1);
      write(component, 0, data);
      same_slots(geometry, read(component, 0, 40), data);
    }
  }
}

TEST("different slots may be written and read by several threads") {
  const Scratch scratch;
  const Geometry geometry = odd(blosc2_for(8), true);
  Component component = Component::create(scratch.file(), geometry);
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (std::int64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      try {
        for (std::uint64_t i = 0; i < 10; ++i) {
          const Buffer data = content(geometry, 10, i);
          write(component, 10 * t, data);
          same_slots(geometry, read(component, 10 * t, 10), data);
        }
      } catch (const std::exception&) {
        ++failed;
      }
    });
  for (std::thread& thread : threads) thread.join();
  check::equal(failed.load(), 0);
}

// ---- space

TEST("what is not written takes no space, whatever the length of the file") {
  const Scratch scratch;
  Geometry geometry = large();
  geometry.slots = 1 << 20;
  geometry.shadow = true;
  Component component = Component::create(scratch.file(), geometry);
  write(component, geometry.slots - 2, content(geometry, 2, 1));
  component.flush();
  check::equal(static_cast<std::int64_t>(std::filesystem::file_size(scratch.file())), geometry.file_bytes());
  check::is_true(space_of(scratch.file()) < 1 << 20);
}

TEST("preallocation takes the space of one side") {
  const Scratch scratch;
  Geometry geometry = large();
  geometry.shadow = true;
  const Component component = Component::create(scratch.file(), geometry, {.preallocate = true});
  check::is_true(space_of(scratch.file()) >= 64 * (128 << 10) && space_of(scratch.file()) < 65 * (128 << 10));
}

TEST("space is reserved for the version that is written next, and for nothing else") {
  const Scratch scratch;
  Geometry geometry = large();
  geometry.shadow = true;
  Component component = Component::create(scratch.file(), geometry);
  component.reserve(10, 20);
  const std::int64_t reserved = space_of(scratch.file());
  check::is_true(reserved >= 20 * geometry.slot_bytes && reserved < 21 * geometry.slot_bytes);
  write(component, 10, content(geometry, 20, 1));
  component.flush();
  check::is_true(space_of(scratch.file()) < 21 * geometry.slot_bytes, "it was written there");
  component.committed();
  component.reserve(10, 20);
  check::is_true(space_of(scratch.file()) >= 40 * geometry.slot_bytes, "beside the version that is there");
  same_slots(geometry, read(component, 10, 20), content(geometry, 20, 1));
}

TEST("no space is reserved for chunks that are compressed, or beyond the end") {
  const Scratch scratch;
  Geometry geometry = large();
  geometry.codec = {.codec = Codec::blosc2};
  Component component = Component::create(scratch.file(), geometry);
  component.reserve(0, 64);
  check::is_true(space_of(scratch.file()) < geometry.slot_bytes);
  check::equal(check::throws<Error>([&] { component.reserve(60, 5); }).errno_value(), EINVAL);
}

TEST("a chunk that shrinks takes the pages it needs, one that does not is stored as it is") {
  const Scratch scratch;
  Geometry geometry = large();
  geometry.codec = blosc2_for(8);
  Component component = Component::create(scratch.file(), geometry);
  write(component, 0, content(geometry, 10, 1, 0));
  for (std::int64_t slot = 0; slot < 10; ++slot)
    check::is_true(component.table().stored_bytes(slot) < geometry.slot_bytes / 4);
  write(component, 10, content(geometry, 10, 1, 1));
  for (std::int64_t slot = 10; slot < 20; ++slot)
    check::equal(component.table().stored_bytes(slot), geometry.slot_bytes);
  component.flush();
  check::is_true(space_of(scratch.file()) < 13 * geometry.slot_bytes);
}

TEST("a version that is smaller gives back what it does not need") {
  const Scratch scratch;
  Geometry geometry = large();
  geometry.codec = blosc2_for(8);
  Component component = Component::create(scratch.file(), geometry);
  write(component, 0, content(geometry, 64, 1, 1));
  component.flush();
  const std::int64_t before = space_of(scratch.file());
  const Buffer data = content(geometry, 64, 2, 0);
  write(component, 0, data);
  component.flush();
  check::is_true(space_of(scratch.file()) < before / 4);
  same_slots(geometry, read(component, 0, 64), data);
}

TEST("after a commit the space of the state before is given back") {
  const Scratch scratch;
  Geometry geometry = large();
  geometry.shadow = true;
  Component component = Component::create(scratch.file(), geometry);
  write(component, 0, content(geometry, 64, 1));
  component.committed();
  const Buffer data = content(geometry, 64, 2);
  write(component, 0, data);
  component.flush();
  const std::int64_t both = space_of(scratch.file());
  component.committed();
  check::is_true(both >= 2 * 64 * geometry.slot_bytes);
  check::is_true(space_of(scratch.file()) <= both / 2);
  same_slots(geometry, read(component, 0, 64), data);
}

TEST(
    "the space of the state before is kept for the next one if that is wanted, there, and when opened "
    "again") {
  const Scratch scratch;
  Geometry geometry = large();
  geometry.shadow = true;
  const ComponentOptions keeping{.keep_space = true};
  Component component = Component::create(scratch.file(), geometry, keeping);
  for (std::uint64_t version = 1; version <= 3; ++version) {
    write(component, 0, content(geometry, 64, version));
    component.flush();
    component.committed();
  }
  const std::int64_t both = space_of(scratch.file());
  check::is_true(both >= 2 * 64 * geometry.slot_bytes && both < 3 * 64 * geometry.slot_bytes);
  const std::vector<std::byte> table = component.encode_table();
  component.close();
  component = Component::open(scratch.file(), SlotTable::decode(table, "table"), keeping);
  component.release_unused();
  check::equal(space_of(scratch.file()), both);
  same_slots(geometry, read(component, 0, 64), content(geometry, 64, 3));
}

TEST("space that a process has left which died before its commit can be had back") {
  const Scratch scratch;
  Geometry geometry = large();
  geometry.shadow = true;
  const Buffer data = content(geometry, 30, 1);
  std::vector<std::byte> table;
  {
    Component component = Component::create(scratch.file(), geometry);
    write(component, 5, data);
    component.flush();
    table = component.encode_table();
    component.committed();
    write(component, 0, content(geometry, 64, 2));
    component.flush();
  }
  Component component = Component::open(scratch.file(), SlotTable::decode(table, "table"));
  component.release_unused();
  const std::int64_t used = space_of(scratch.file());
  check::is_true(used >= 30 * geometry.slot_bytes && used < 31 * geometry.slot_bytes);
  same_slots(geometry, read(component, 5, 30), data);
}

// ---- names, and refused calls

TEST("a name that is taken is not overwritten") {
  const Scratch scratch;
  const Component first = Component::create(scratch.file(), odd());
  check::equal(check::throws<Error>([&] {
                 static_cast<void>(Component::create(scratch.file(), odd()));
               }).errno_value(),
               EEXIST);
}

TEST("a file that is not there, or was removed, cannot be opened") {
  const Scratch scratch;
  Component::create(scratch.file(), odd()).close();
  Component::remove(scratch.file());
  const auto open = [&] { static_cast<void>(Component::open(scratch.file(), SlotTable(odd()))); };
  check::equal(check::throws<Error>(open).errno_value(), ENOENT);
  check::equal(check::throws<Error>([&] { Component::remove(scratch.file()); }).errno_value(), ENOENT);
}

TEST("a scratch component has no name") {
  const Scratch scratch;
  Component component = Component::create(scratch.file(), odd(), {.unlink_after_open = true});
  const Buffer data = content(odd(), 4, 1);
  write(component, 0, data);
  check::is_true(!std::filesystem::exists(scratch.file()));
  same_slots(odd(), read(component, 0, 4), data);
}

TEST("slots that are not there, memory of another size, and closed or read-only files are refused") {
  const Scratch scratch;
  const Geometry geometry = odd();
  Component component = Component::create(scratch.file(), geometry);
  const Buffer data = content(geometry, 3, 1);
  const auto refused = [&](const std::function<void()>& body) {
    return check::throws<Error>(body).errno_value();
  };
  check::equal(refused([&] { (void)component.write_async(38, 3, data.span()); }), EINVAL);
  check::equal(refused([&] { (void)component.write_async(-1, 3, data.span()); }), EINVAL);
  check::equal(refused([&] { (void)component.write_async(0, 2, data.span()); }), EINVAL);
  check::equal(refused([&] { (void)component.read_async(38, 3, data.span()); }), EINVAL);
  const std::span slot = data.span().first(static_cast<std::size_t>(geometry.stride_bytes()));
  const std::int64_t blocks = geometry.blocks();
  check::equal(refused([&] { (void)component.read_blocks_async(0, blocks - 1, 2, slot); }), EINVAL);
  check::equal(refused([&] { (void)component.read_blocks_async(0, -1, 1, slot); }), EINVAL);
  check::equal(refused([&] { (void)component.read_blocks_async(0, 0, 0, slot); }), EINVAL);
  check::equal(refused([&] { (void)component.read_blocks_async(40, 0, 1, slot); }), EINVAL);
  check::equal(refused([&] { (void)component.read_blocks_async(0, 0, 1, slot.first(2)); }), EINVAL);
  write(component, 0, data);
  const auto table = component.encode_table();
  component.close();
  component.close();
  check::equal(refused([&] { (void)component.write_async(0, 3, data.span()); }), EBADF);
  check::equal(refused([&] { (void)component.read_async(0, 3, data.span()); }), EBADF);
  Component reader = Component::open(scratch.file(), SlotTable::decode(table, "table"), {.read_only = true});
  check::equal(refused([&] { (void)reader.write_async(0, 3, data.span()); }), EBADF);
  same_slots(geometry, read(reader, 0, 3), data);
}

TEST_MAIN
