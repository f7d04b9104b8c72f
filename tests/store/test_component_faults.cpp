// Components when something fails: damage is found and named, failed writes change no valid data, and the
// committed state survives.
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "device/fault.hpp"
#include "store/component_support.hpp"

using namespace outcore;
using namespace component_support;
using device::Fault;
using device::FaultPlan;
using device::Operation;
using Kind = Operation::Kind;
using support::Scratch;

namespace {

/// Injects `fault` into the n-th operation of a kind, once.
FaultPlan nth(Kind kind, std::uint64_t n, Fault fault) {
  FaultPlan plan;
  plan.script = [=, seen = std::make_shared<std::uint64_t>(0)](std::uint64_t, const Operation& operation) {
    return operation.kind == kind && (*seen)++ == n ? fault : Fault::none;
  };
  return plan;
}

struct Faulty {
  explicit Faulty(FaultPlan plan)
      : engine(device::make_fault_engine(device::make_thread_engine(2), std::move(plan))) {}
  std::unique_ptr<device::FaultEngine> engine;
  Scratch scratch;
  [[nodiscard]] ComponentOptions options() const { return {.engine = engine.get()}; }
  [[nodiscard]] Component create(const Geometry& geometry) const {
    return Component::create(scratch.file(), geometry, options());
  }
};

/// A file system of 1 MiB.
struct SmallDisk : Scratch {
  bool there = mount("outcore-test", path().c_str(), "tmpfs", 0, "size=1m") == 0;
  SmallDisk() {
    if (!there) std::printf("      NOT TESTED: needs the right to mount a small file system\n");
  }
  ~SmallDisk() {
    if (there) umount2(path().c_str(), MNT_DETACH);
  }
};

}  // namespace

// ---- damage

TEST("a flipped bit anywhere in a chunk is found, and named with slot, block, place and sums") {
  for (const CodecOptions& codec : codecs) {
    const Scratch scratch;
    const Geometry geometry = odd(codec);
    Component component = Component::create(scratch.file(), geometry, {.describe = [](std::int64_t slot) {
                                              return "chunk " + std::to_string(7 * slot);
                                            }});
    const Buffer data = content(geometry, 10, 3);
    write(component, 0, data);
    component.flush();
    for (std::int64_t slot = 0; slot < 10; ++slot) {
      const std::int64_t stored = component.table().stored_bytes(slot);
      for (const std::int64_t at : {std::int64_t{0}, stored / 2, stored - 1}) {
        const std::int64_t place = geometry.offset_of(slot, 0) + at, block = at / geometry.block_bytes;
        flip_bit(scratch.file(), place);
        const Error error = read_error(component, 0, 10);
        check::equal(error.errno_value(), EIO);
        check::equal(error.context().offset, geometry.offset_of(slot, 0) + block * geometry.block_bytes);
        check::contains(error.what(), scratch.file());
        check::contains(error.what(), "block " + std::to_string(block) + " of slot " + std::to_string(slot) +
                                          ", chunk " + std::to_string(7 * slot) + " has checksum 0x");
        check::contains(error.what(), "expected 0x");
        flip_bit(scratch.file(), place);
      }
    }
    same_slots(geometry, read(component, 0, 10), data);
  }
}

TEST("one damaged slot does not keep the others from being read") {
  const Scratch scratch;
  const Geometry geometry = odd();
  Component component = Component::create(scratch.file(), geometry);
  const Buffer data = content(geometry, 3, 3);
  write(component, 0, data);
  component.flush();
  flip_bit(scratch.file(), geometry.offset_of(1, 0));
  for (const std::int64_t slot : {0, 2})
    support::same(slot_in(geometry, read(component, slot, 1), 0), slot_in(geometry, data, slot));
  check::equal(read_error(component, 1).errno_value(), EIO);
}

TEST("reading blocks finds damage in them") {
  const Scratch scratch;
  const Geometry geometry = odd();
  Component component = Component::create(scratch.file(), geometry);
  write(component, 0, content(geometry, 1, 3));
  component.flush();
  flip_bit(scratch.file(), 2 * geometry.block_bytes + 17);
  const Buffer back(static_cast<std::size_t>(geometry.stride_bytes()));
  component.read_blocks_async(0, 1, 1, back.span()).wait();
  const auto part = [&] { component.read_blocks_async(0, 2, 1, back.span()).wait(); };
  check::contains(check::throws<Error>(part).what(), "block 2 of slot 0");
}

TEST("a bit flipped on the way from the device is found") {
  Faulty faulty(nth(Kind::read, 0, Fault::bit_flip));
  Geometry geometry = odd();
  geometry.slot_bytes = 8 * Geometry::page_bytes;  // no bit is without meaning
  Component component = faulty.create(geometry);
  const Buffer data = content(geometry, 10, 3);
  write(component, 0, data);
  check::equal(read_error(component, 0, 10).errno_value(), EIO);
  same_slots(geometry, read(component, 0, 10), data);
}

TEST("a write that the device reported but did not do is found") {
  Faulty faulty(nth(Kind::write, 1, Fault::torn_write));
  const Geometry geometry = odd();
  Component component = faulty.create(geometry);
  const Buffer first = content(geometry, 1, 3), second = content(geometry, 1, 4);
  write(component, 0, first);
  write(component, 0, second);
  check::contains(read_error(component, 0).what(), "damaged");
}

TEST("what was written but lost, because nothing flushed it, is found missing") {
  for (const CodecOptions& codec : codecs) {
    Faulty faulty({.lose_unsynced = true});
    const Geometry geometry = odd(codec);
    Component component = faulty.create(geometry);
    const Buffer flushed = content(geometry, 5, 3);
    write(component, 0, flushed);
    component.flush();
    write(component, 5, content(geometry, 5, 4));
    check::is_true(faulty.engine->crash() > 0, "something was lost");
    same_slots(geometry, read(component, 0, 5), flushed);
    for (std::int64_t slot = 5; slot < 10; ++slot)
      check::equal(read_error(component, slot).errno_value(), EIO);
  }
}

TEST("a file that is truncated or too long is not opened") {
  const Scratch scratch;
  const Geometry geometry = odd({}, true);
  Component::create(scratch.file(), geometry).close();
  const auto open = [&] { static_cast<void>(Component::open(scratch.file(), SlotTable(geometry))); };
  std::filesystem::resize_file(scratch.file(), static_cast<std::uintmax_t>(geometry.file_bytes() - 1));
  Error error = check::throws<Error>(open);
  check::equal(error.errno_value(), EIO);
  check::contains(error.what(), "truncated: have " + std::to_string(geometry.file_bytes() - 1) +
                                    " bytes, need " + std::to_string(geometry.file_bytes()));
  std::filesystem::resize_file(scratch.file(), static_cast<std::uintmax_t>(geometry.file_bytes() + 1));
  error = check::throws<Error>(open);
  check::contains(error.what(), "too long");
}

TEST("a file that is truncated while it is open is found out") {
  const Scratch scratch;
  const Geometry geometry = odd();
  Component component = Component::create(scratch.file(), geometry);
  write(component, 0, content(geometry, 40, 3));
  std::filesystem::resize_file(scratch.file(), static_cast<std::uintmax_t>(geometry.offset_of(20, 0)));
  const Error error = read_error(component, 18, 5);
  check::equal(error.errno_value(), EIO);
  check::contains(error.what(), "truncated: the file ends here, in slot 20");
  static_cast<void>(read(component, 0, 20));
}

// ---- failing transfers

TEST("short and interrupted transfers are nothing special") {
  for (const CodecOptions& codec : codecs) {
    Faulty faulty({.seed = 7, .short_transfer = 0.4, .interrupted = 0.2});
    const Geometry geometry = odd(codec, true);
    Component component = faulty.create(geometry);
    const Buffer data = content(geometry, 40, 3);
    for (int i = 0; i < 8; ++i) {
      write(component, 0, data);
      same_slots(geometry, read(component, 0, 40), data);
    }
    component.flush();
    check::is_true(faulty.engine->injected() > 5, "faults were injected");
  }
}

TEST("a failed write names slot and chunk, and leaves the table as it was") {
  Faulty faulty(nth(Kind::write, 0, Fault::io_error));
  ComponentOptions options = faulty.options();
  options.describe = [](std::int64_t slot) { return "chunk " + std::to_string(100 + slot); };
  Component component = Component::create(faulty.scratch.file(), odd(), options);
  const Buffer data = content(odd(), 2, 3);
  const Error error = check::throws<Error>([&] { write(component, 4, data); });
  check::equal(error.errno_value(), EIO);
  check::contains(error.what(), "write of");
  check::contains(error.what(), faulty.scratch.file());
  check::contains(error.what(), "slot 4, chunk 104");
  check::is_true(!component.table().written(4) && !component.table().written(5));
  component.flush();  // the failure has been delivered
  write(component, 4, data);
  same_slots(odd(), read(component, 4, 2), data);
}

TEST("a failed read is one of its request, not of the component") {
  Faulty faulty(nth(Kind::read, 0, Fault::io_error));
  Component component = faulty.create(odd());
  const Buffer data = content(odd(), 2, 3);
  write(component, 0, data);
  const Error error = read_error(component, 0, 2);
  check::equal(error.errno_value(), EIO);
  check::contains(error.what(), "slot 0");
  same_slots(odd(), read(component, 0, 2), data);
}

TEST("the slots of a request whose transfers went well count, those of others do not") {
  Faulty faulty(nth(Kind::write, 1, Fault::io_error));
  const Geometry geometry{.slot_bytes = 1 << 20, .slots = 8};
  Component component = faulty.create(geometry);
  const Buffer data = content(geometry, 8, 3);
  check::throws<Error>([&] { write(component, 0, data); });  // two pieces of 4 slots
  int counted = 0;
  for (std::int64_t slot = 0; slot < 8; ++slot) counted += component.table().written(slot);
  check::equal(counted, 4);
  const Buffer back = read(component, 0, 8);
  for (std::int64_t slot = 0; slot < 8; ++slot)
    if (component.table().written(slot))
      support::same(slot_in(geometry, back, slot), slot_in(geometry, data, slot));
}

TEST("a write that nobody waited for counts, and its failure fails the flush") {
  Faulty faulty(nth(Kind::write, 1, Fault::io_error));
  Component component = faulty.create(odd());
  const Buffer data = content(odd(), 2, 3);
  {
    const auto dropped = component.write_async(0, 2, data.span());
  }
  check::is_true(component.table().written(1));
  component.flush();
  {
    const auto dropped = component.write_async(2, 2, data.span());
  }
  check::equal(check::throws<Error>([&] { component.flush(); }).errno_value(), EIO);
  component.flush();
  component.close();
}

TEST("a write that nobody waited for, and failed, fails the close") {
  Faulty faulty(nth(Kind::write, 0, Fault::io_error));
  Component component = faulty.create(odd());
  const Buffer data = content(odd(), 2, 3);
  {
    const auto dropped = component.write_async(0, 2, data.span());
  }
  check::equal(check::throws<Error>([&] { component.close(); }).errno_value(), EIO);
}

TEST("a failing flush is reported") {
  Faulty faulty(nth(Kind::sync, 0, Fault::io_error));
  Component component = faulty.create(odd());
  check::equal(check::throws<Error>([&] { component.flush(); }).errno_value(), EIO);
}

TEST("a request is not done while the device is not") {
  Faulty faulty({.slow_ns = 200'000'000, .script = [](std::uint64_t, const Operation& operation) {
                   return operation.kind == Kind::write ? Fault::slow : Fault::none;
                 }});
  Component component = faulty.create(odd());
  const Buffer data = content(odd(), 2, 3);
  auto request = component.write_async(0, 2, data.span());
  check::is_true(!request.done(), "under way");
  request.wait();
  check::is_true(request.done(), "complete");
  request.wait();
}

// ---- a full disk

TEST("a full disk says what is missing; earlier content stays, and what fits is taken") {
  for (const bool shadow : {false, true}) {
    Faulty faulty({.full_after_bytes = 12 * 32768});
    const Geometry geometry = odd({}, shadow);
    Component component = faulty.create(geometry);
    const Buffer data = content(geometry, 10, 3);
    write(component, 0, data);
    component.flush();
    component.committed();
    const Buffer more = content(geometry, 10, 4);
    const Error error = check::throws<Error>([&] { write(component, 10, more); });
    check::equal(error.errno_value(), ENOSPC);
    check::contains(error.what(), "needed: ");
    check::contains(error.what(), "slot 1");
    same_slots(geometry, read(component, 0, 10), data);
    for (std::int64_t slot = 10; slot < 20; ++slot) check::is_true(!component.table().written(slot));
    component.flush();
  }
}

TEST("a full disk in the middle of an update leaves the committed state alone") {
  for (const CodecOptions& codec : codecs) {
    Faulty faulty({.full_after_bytes = 600'000});
    const Geometry geometry = odd(codec, true);
    Component component = faulty.create(geometry);
    const Buffer data = content(geometry, 10, 3, 1);  // noise, so that the codecs need the space, too
    write(component, 0, data);
    component.flush();
    const auto table = component.encode_table();
    component.committed();
    check::equal(check::throws<Error>([&] {
                   for (std::uint64_t i = 0; i < 10; ++i)
                     write(component, 0, content(geometry, 10, 4 + i, 1));
                 }).errno_value(),
                 ENOSPC);
    component.close();
    const Component again =
        Component::open(faulty.scratch.file(), SlotTable::decode(table, "table"), faulty.options());
    same_slots(geometry, read(again, 0, 10), data);
  }
}

TEST("a version that needs more than the disk has leaves the smaller one it was to replace") {
  const SmallDisk scratch;
  if (!scratch.there) return;
  const Geometry geometry{.slot_bytes = 256 << 10, .slots = 64, .codec = blosc2_for(8)};
  Component component = Component::create(scratch.file(), geometry);
  const Buffer data = content(geometry, 20, 3, 0);
  write(component, 0, data);
  const Error error = check::throws<Error>([&] { write(component, 0, content(geometry, 20, 4, 1)); });
  check::equal(error.errno_value(), ENOSPC);
  check::contains(error.what(), "free: ");
  int kept = 0;
  for (std::int64_t slot = 0; slot < 20; ++slot)
    if (component.table().stored_bytes(slot) < geometry.slot_bytes) {
      support::same(slot_in(geometry, read(component, slot, 1), 0), slot_in(geometry, data, slot));
      ++kept;
    } else {
      static_cast<void>(read(component, slot, 1));  // replaced, in full
    }
  check::is_true(kept >= 16, "1 MiB has room for few");
}

TEST("a component that cannot be made for want of space leaves nothing") {
  const SmallDisk scratch;
  if (!scratch.there) return;
  const Geometry geometry{.slot_bytes = 256 << 10, .slots = 64};
  const auto create = [&] {
    static_cast<void>(Component::create(scratch.file(), geometry, {.preallocate = true}));
  };
  const Error error = check::throws<Error>(create);
  check::equal(error.errno_value(), ENOSPC);
  check::contains(error.what(), "needed: " + std::to_string(geometry.file_bytes()) + " bytes, free: ");
  check::is_true(!std::filesystem::exists(scratch.file()));
}

// ---- commits

TEST("what is overwritten after a commit, flushed or lost, leaves the committed state") {
  for (const CodecOptions& codec : codecs) {
    Faulty faulty({.lose_unsynced = true});
    const Geometry geometry = odd(codec, true);
    const Buffer data = content(geometry, 20, 3);
    std::vector<std::byte> table;
    {
      Component component = faulty.create(geometry);
      write(component, 0, content(geometry, 20, 1));
      component.committed();
      write(component, 0, data);
      component.flush();
      table = component.encode_table();
      component.committed();
      write(component, 5, content(geometry, 10, 4));
      component.flush();
      write(component, 0, content(geometry, 30, 5));
      component.close();
    }
    check::is_true(faulty.engine->crash() > 0, "something was lost");
    const Component again =
        Component::open(faulty.scratch.file(), SlotTable::decode(table, "table"), faulty.options());
    same_slots(geometry, read(again, 0, 20), data);
    for (std::int64_t slot = 20; slot < 30; ++slot) check::is_true(!again.table().written(slot));
  }
}

TEST("overwriting in place, without shadow, after a torn write gives one version or an error, never both") {
  Faulty faulty({.seed = 3, .io_error = 0.3, .torn_write = 0.3});
  const Geometry geometry = odd();
  Component component = faulty.create(geometry);
  std::mt19937_64 random(5);
  std::vector<Buffer> versions;
  int damaged = 0, good = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    versions.push_back(content(geometry, 1, i, 2));
    try {
      write(component, 0, versions.back());
    } catch (const Error&) {  // as was to be expected
    }
    try {
      const Buffer back = read(component, 0, 1);
      const auto is_back = [&](const Buffer& version) {
        return std::ranges::equal(slot_in(geometry, back, 0), slot_in(geometry, version, 0));
      };
      const bool zeros = std::ranges::all_of(back.span(), [](std::byte b) { return b == std::byte{0}; });
      check::is_true(std::ranges::any_of(versions, is_back) || (zeros && !component.table().written(0)));
      ++good;
    } catch (const Error& error) {
      check::equal(error.errno_value(), EIO);
      ++damaged;
    }
  }
  check::is_true(damaged > 5 && good > 5, "both happened");
}

TEST_MAIN
