#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "device/buffer.hpp"
#include "device/fault.hpp"
#include "device/sequential.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/engine.hpp"
#include "outcore/trace.hpp"
#include "support.hpp"

using namespace outcore;
using namespace outcore::device;
using support::Bytes;
using support::pattern;
using support::same;
using support::Scratch;

namespace {

constexpr std::size_t record = 1600;

struct Requests {
  std::uint64_t reads = 0, writes = 0, nonblocking_writes = 0;
};

/// The operations that have reached the device so far.
Requests device_requests() {
  const auto counters = trace::snapshot().counters[std::size_t(trace::Layer::device)];
  const auto count = [&](trace::Op op) { return counters[std::size_t(op)].count; };
  return {count(trace::Op::read) + count(trace::Op::read_async),
          count(trace::Op::write) + count(trace::Op::write_async), count(trace::Op::write_async)};
}

void write_records(SequentialBuffer& buffer, const Bytes& data, std::int64_t offset = 0) {
  for (std::size_t at = 0; at < data.size(); at += record) {
    const auto part = std::span(data).subspan(at, std::min(record, data.size() - at));
    check::equal(buffer.write(part, offset + std::int64_t(at)), std::int64_t(part.size()));
  }
}

Bytes read_records(SequentialBuffer& buffer, std::size_t size, std::int64_t offset = 0) {
  Bytes back(size);
  for (std::size_t at = 0; at < size; at += record) {
    const auto part = std::span(back).subspan(at, std::min(record, size - at));
    check::equal(buffer.read(part, offset + std::int64_t(at)), std::int64_t(part.size()));
  }
  return back;
}

struct Setting {
  explicit Setting(Engine* engine = nullptr, PageCache page_cache = PageCache::automatic)
      : file(scratch.file(), {.page_cache = page_cache, .engine = engine}), buffer(file) {}
  Scratch scratch;
  File file;
  SequentialBuffer buffer;
};

}  // namespace

TEST("sequential records reach the device in large blocks, written while the next is filled") {
  Setting s(nullptr, PageCache::direct);
  const Bytes data = pattern(10'000'000, 1);
  const Requests before = device_requests();
  write_records(s.buffer, data);
  s.buffer.drain();
  const Requests written = device_requests();
  check::is_true(written.writes - before.writes <= 13, "two plain writes, then ten or eleven blocks");
  check::is_true(written.nonblocking_writes - before.nonblocking_writes >= 10, "blocks are not waited for");
  same(read_records(s.buffer, data.size()), data);
  check::is_true(device_requests().reads - written.reads <= 22,
                 "two plain reads, then blocks that grow to 1 MiB, some beyond the end");
}

TEST("sequential records reach the page cache in blocks that the caller copies") {
  const Bytes data = pattern(10'000'000, 1);
  const auto none_was_held_up = [&] {  // beside other programs a copy may last long enough to seem to wait
    Setting s;
    const Requests before = device_requests();
    write_records(s.buffer, data);
    s.buffer.drain();
    const Requests written = device_requests();
    check::is_true(written.writes - before.writes <= 42, "two plain writes, then 39 or 40 blocks");
    same(read_records(s.buffer, data.size()), data);
    check::is_true(device_requests().reads - written.reads <= 28,
                   "two plain reads, then blocks that grow to 512 KiB");
    return written.nonblocking_writes == before.nonblocking_writes;
  };
  bool copied = false;
  for (int attempt = 0; !copied && attempt < 20; ++attempt) copied = none_was_held_up();
  check::is_true(copied, "by the caller");
}

TEST("after a copy to the page cache that had to wait, the engine waits for the next blocks") {
  bool held_up = false;
  FaultPlan plan{.slow_ns = 5'000'000};
  plan.script = [&](std::uint64_t, const Operation& operation) {
    const bool block = operation.kind == Operation::Kind::write && operation.size_bytes > 10'000;
    return block && !std::exchange(held_up, true) ? Fault::slow : Fault::none;
  };
  const auto engine = make_fault_engine(make_thread_engine(1), plan);
  Setting s(engine.get());
  const Bytes data = pattern(80'000'000, 4);
  const Requests before = device_requests();
  write_records(s.buffer, data);
  s.buffer.drain();
  check::is_true(device_requests().nonblocking_writes - before.nonblocking_writes >= 64, "64 blocks");
  Bytes back(data.size());
  s.file.read(back, 0);
  same(back, data);
}

TEST("a run asks for what is in memory only when it is needed") {
  Setting s;
  const Bytes data = pattern(10'000'000, 13);
  s.file.write(data, 0);
  if (!s.file.resident(0, 4096)) return;  // this kernel cannot tell
  const Requests before = device_requests();
  same(read_records(s.buffer, 10 * record), std::span(data).first(10 * record));
  check::equal(device_requests().reads - before.reads, 3U);  // two plain reads, one block
}

TEST("a run that began on the disk goes on in memory where that has the rest") {
  const Bytes data = pattern(10'000'000, 14);
  const auto begins_on_disk = [](std::uint64_t, const Operation& o) {
    const bool there = o.kind == Operation::Kind::resident && o.offset < (1 << 20);
    return there ? Fault::io_error : Fault::none;
  };
  const auto engine = make_fault_engine(make_thread_engine(2), {.script = begins_on_disk});
  Setting s(engine.get());
  s.file.write(data, 0);
  if (!s.file.resident(2 << 20, 4096)) return;  // this kernel cannot tell
  const auto read_ahead = [] {
    return trace::snapshot()
        .counters[std::size_t(trace::Layer::device)][std::size_t(trace::Op::read_async)]
        .bytes;
  };
  const auto before = read_ahead();
  same(read_records(s.buffer, data.size()), data);
  check::is_true(read_ahead() > before, "the beginning was read ahead");
  check::is_true(read_ahead() - before <= (4 << 20), "the rest was not");
}

TEST("random records are plain calls, one each") {
  Setting s;
  const Bytes data = pattern(200 * record, 2);
  std::vector<std::size_t> order(200);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = (i * 77) % order.size();
  const Requests before = device_requests();
  for (std::size_t i : order)
    s.buffer.write(std::span(data).subspan(i * record, record), std::int64_t(i * record));
  check::equal(device_requests().writes - before.writes, 200U);
  Bytes back(record);
  for (std::size_t i : order) {
    s.buffer.read(back, std::int64_t(i * record));
    same(back, std::span(data).subspan(i * record, record));
  }
  check::equal(device_requests().reads - before.reads, 200U);
}

TEST("a read sees the writes before it, wherever they are") {
  Setting s;
  const Bytes data = pattern(5'000'000, 3);
  Bytes back(100'000);
  for (std::size_t at = 0; at + record <= data.size(); at += record) {
    s.buffer.write(std::span(data).subspan(at, record), std::int64_t(at));
    if (at % (record * 97) == 0) {  // the last records, then a stretch that ends in them
      s.buffer.read(std::span(back).first(record), std::int64_t(at));
      same(std::span(back).first(record), std::span(data).subspan(at, record));
      const std::size_t from = at + record > back.size() ? at + record - back.size() : 0;
      const std::span part = std::span(back).first(at + record - from);
      check::equal(s.buffer.read(part, std::int64_t(from)), std::int64_t(part.size()));
      same(part, std::span(data).subspan(from, part.size()));
    }
  }
}

TEST("records changed in place are read as changed") {
  Setting s;
  Bytes data = pattern(3'000'000 / record * record, 4);
  write_records(s.buffer, data);
  s.buffer.drain();
  Bytes one(record);
  for (int pass = 0; pass < 2; ++pass)
    for (std::size_t at = 0; at < data.size(); at += record) {
      s.buffer.read(one, std::int64_t(at));
      same(one, std::span(data).subspan(at, record));
      one[7] ^= std::byte(0x55);
      s.buffer.write(one, std::int64_t(at));
      std::memcpy(data.data() + at, one.data(), record);
      s.buffer.read(one, std::int64_t(at));
      same(one, std::span(data).subspan(at, record));
    }
  s.buffer.drain();
  Bytes back(data.size());
  s.file.read(back, 0);
  same(back, data);
}

TEST("the length counts what is still to be written") {
  Setting s;
  write_records(s.buffer, pattern(10 * record, 5));
  check::is_true(s.file.length() < std::int64_t(10 * record), "not written yet");
  check::equal(s.buffer.length(), std::int64_t(10 * record));
  s.buffer.drain();
  check::equal(s.file.length(), std::int64_t(10 * record));
}

TEST("reading records up to the end, and after the file has grown") {
  Setting s;
  const Bytes data = pattern(100 * record + 300, 6);
  write_records(s.buffer, data);
  same(read_records(s.buffer, data.size()), data);
  Bytes back(record);
  check::equal(s.buffer.read(back, 100 * record), 300);
  check::equal(s.buffer.read(back, 100 * record + 300), 0);
  const Bytes more = pattern(50 * record, 7);
  write_records(s.buffer, more, 100 * record + 300);
  same(read_records(s.buffer, more.size(), 100 * record + 300), more);
}

TEST("requests that go past are in step after before_read and before_write") {
  Setting s;
  Bytes data = pattern(2'000'000, 8);
  write_records(s.buffer, data);
  Bytes back(10000);
  s.buffer.before_read(1'990'000, 10000);
  s.file.read_async(back, 1'990'000).wait();
  same(back, std::span(data).last(10000));
  read_records(s.buffer, 400'000);  // a run that has read ahead
  const Bytes fresh = pattern(300'000, 9);
  s.buffer.before_write(400'000, 300'000);
  s.file.write_async(fresh, 400'000).wait();
  std::copy(fresh.begin(), fresh.end(), data.begin() + 400'000);
  same(read_records(s.buffer, 1'600'000, 400'000), std::span(data).subspan(400'000));
}

TEST("any mixture agrees with a model in memory") {
  for (std::uint64_t seed : {1, 2, 3, 4}) {
    Scratch scratch;
    const auto engine = make_fault_engine(
        make_thread_engine(3),
        {.seed = seed, .short_transfer = 0.2, .interrupted = 0.1, .slow = 0.1, .slow_ns = 300'000});
    File file(scratch.file(), {.engine = engine.get()});
    SequentialBuffer buffer(file, {.small_bytes = 64 << 10,
                                   .block_bytes = 128 << 10,
                                   .write_blocks = 2 + unsigned(seed % 2),
                                   .read_blocks = 3});
    std::mt19937_64 random(seed);
    Bytes model;
    std::size_t at = 0;
    for (int step = 0; step < 6000; ++step) {
      if (random() % 40 == 0) at = random() % (model.size() + 5000);  // else go on where we are
      const std::size_t size = random() % 50 ? random() % 3000 + 1 : random() % 200000;
      if (step % 400 < 200) {
        const Bytes data = pattern(size, random());
        const bool held = step % 2 && buffer.write_held(data, std::int64_t(at));
        if (!held) buffer.write(data, std::int64_t(at));
        if (model.size() < at + size) model.resize(at + size);
        std::copy(data.begin(), data.end(), model.begin() + std::ptrdiff_t(at));
      } else {
        Bytes back(size);
        const auto expected = at >= model.size() ? 0 : std::min(size, model.size() - at);
        if (step % 2 && buffer.read_held(back, std::int64_t(at)))
          check::equal(size, expected);
        else
          check::equal(buffer.read(back, std::int64_t(at)), std::int64_t(expected));
        if (expected) same(std::span(back).first(expected), std::span(model).subspan(at, expected));
        if (at >= model.size()) at = 0;
      }
      at += size;
      if (random() % 500 == 0) buffer.drain();
      check::equal(buffer.length(), std::int64_t(model.size()));
    }
    buffer.flush();
    Bytes whole(model.size());
    file.read(whole, 0);
    same(whole, model);
  }
}

TEST("a failed write-behind is thrown once, by a later write or by drain") {
  for (const PageCache page_cache : {PageCache::direct, PageCache::automatic})
    for (const bool last : {false, true}) {  // the first block, which a later write notices, or the last
      const auto engine = make_fault_engine(
          make_thread_engine(1), {.script = [&](std::uint64_t, const Operation& operation) {
            const bool block = operation.kind == Operation::Kind::write && operation.size_bytes > 10'000;
            const bool wanted =
                last ? operation.offset + operation.size_bytes > 4'990'000 : operation.offset < 10'000;
            return block && wanted ? Fault::io_error : Fault::none;
          }});
      Setting s(engine.get(), page_cache);
      int thrown = 0;
      const auto count = [&](const std::function<void()>& action) {
        try {
          action();
        } catch (const Error& error) {
          check::equal(error.errno_value(), EIO);
          ++thrown;
        }
      };
      count([&] { write_records(s.buffer, pattern(5'000'000, 10)); });
      check::equal(thrown, last ? 0 : 1);
      count([&] { s.buffer.drain(); });
      check::equal(thrown, 1);
      s.buffer.drain();
      s.file.flush();
    }
}

TEST("a failed read-ahead is invisible unless the bytes are needed") {
  Scratch scratch;
  const auto engine = make_fault_engine(
      make_thread_engine(2), {.script = [](std::uint64_t, const Operation& o) {
        return o.kind == Operation::Kind::read && o.offset >= 200'000 && o.size_bytes > 10'000
                   ? Fault::io_error
                   : Fault::none;
      }});
  File file(scratch.file(), {.page_cache = PageCache::buffered, .engine = engine.get()});
  const Bytes data = pattern(1'000'000, 11);
  file.write(data, 0);
  SequentialBuffer buffer(file);
  same(read_records(buffer, data.size()), data);  // small reads of the same bytes do not fail
}

TEST("negative offsets and closed files are errors, also in a run") {
  Setting s;
  Bytes data(record);
  for (int i = 0; i < 4; ++i)
    check::equal(check::throws<Error>([&] { s.buffer.write(data, -4800 + i * 1600 - 1); }).errno_value(),
                 EINVAL);
  check::equal(check::throws<Error>([&] { s.buffer.read(data, -1); }).errno_value(), EINVAL);
  s.file.close();
  check::equal(check::throws<Error>([&] { s.buffer.write(data, 0); }).errno_value(), EBADF);
}

TEST("drain gives the blocks back") {
  Setting s;
  trim_pool();
  write_records(s.buffer, pattern(5'000'000, 12));
  read_records(s.buffer, 4'000'000);
  s.buffer.drain();
  check::is_true(pooled_bytes() >= 3 << 20, "they are in the pool");
}

TEST("options that make no sense are refused") {
  Scratch scratch;
  File file(scratch.file());
  check::equal(check::throws<Error>([&] { SequentialBuffer(file, {.block_bytes = 1000}); }).errno_value(),
               EINVAL);
  check::equal(check::throws<Error>([&] { SequentialBuffer(file, {.write_blocks = 1}); }).errno_value(),
               EINVAL);
}

TEST_MAIN
