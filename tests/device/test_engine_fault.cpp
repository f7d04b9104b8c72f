// The fault engine: transfers survive the faults that can be survived and report the others, and each kind of
// fault does what its name says.
#include "conformance/engine.hpp"
#include "device/fault.hpp"

using namespace outcore;
using namespace outcore::device;
using support::Bytes;
using support::pattern;
using support::same;
using support::Scratch;
using Kind = Operation::Kind;

namespace {

FaultPlan harmless() {
  return {.seed = 42, .short_transfer = 0.3, .interrupted = 0.2, .slow = 0.02, .slow_ns = 200'000};
}

/// Injects `fault` into the n-th operation of a kind, once.
FaultPlan nth(Kind kind, std::uint64_t n, Fault fault) {
  FaultPlan plan;
  plan.script = [=, seen = std::make_shared<std::uint64_t>(0)](std::uint64_t, const Operation& operation) {
    return operation.kind == kind && (*seen)++ == n ? fault : Fault::none;
  };
  return plan;
}

struct Faulty {
  explicit Faulty(FaultPlan plan) : engine(make_fault_engine(make_thread_engine(2), std::move(plan))) {}
  std::unique_ptr<FaultEngine> engine;
  Scratch scratch;
  [[nodiscard]] File open(PageCache page_cache = PageCache::buffered) const {
    return File(scratch.file(), {.page_cache = page_cache, .engine = engine.get()});
  }
};

}  // namespace

TEST("the same seed gives the same faults") {
  std::vector<std::uint64_t> counts;
  for (int run = 0; run < 2; ++run) {
    Faulty faulty({.seed = 5, .short_transfer = 0.5, .interrupted = 0.3});
    File file = faulty.open();
    const Bytes data = pattern(100000, 1);
    for (int i = 0; i < 50; ++i) file.write(data, i * 1000);
    counts.push_back(faulty.engine->injected());
  }
  check::is_true(counts[0] > 50, "faults were injected");
  check::equal(counts[0], counts[1]);
}

TEST("EIO reaches the reader with its place") {
  Faulty faulty(nth(Kind::read, 1, Fault::io_error));
  File file = faulty.open();
  file.write(pattern(100, 1), 0);
  Bytes back(60);
  check::equal(file.read(back, 0), 60);
  const auto error = check::throws<Error>([&] { file.read(back, 20); });
  check::equal(error.errno_value(), EIO);
  check::contains(error.what(), "read of 60 bytes at offset 20 of " + faulty.scratch.file());
  check::equal(file.read(back, 20), 60);
}

TEST("an asynchronous EIO waits for the reader") {
  Faulty faulty(nth(Kind::read, 0, Fault::io_error));
  File file = faulty.open();
  file.write(pattern(100, 1), 0);
  Bytes back(60);
  Request request = file.read_async(back, 0);
  while (!request.done()) std::this_thread::yield();
  check::equal(check::throws<Error>([&] { request.test(); }).errno_value(), EIO);
  check::equal(check::throws<Error>([&] { request.wait(); }).errno_value(), EIO);
  file.flush();  // a failed read is not a failed write
}

TEST("a failing flush is reported") {
  Faulty faulty(nth(Kind::sync, 0, Fault::io_error));
  File file = faulty.open();
  file.write(pattern(100, 1), 0);
  const auto error = check::throws<Error>([&] { file.flush(); });
  check::equal(error.errno_value(), EIO);
  check::contains(error.what(), "flush");
  file.flush();
}

TEST("a full device keeps what it took and says what is missing") {
  Faulty faulty({.full_after_bytes = 1 << 20});
  File file = faulty.open();
  const Bytes data = pattern(700000, 1);
  file.write(data, 0);
  const auto error = check::throws<Error>([&] { file.write(data, 700000); });
  check::equal(error.errno_value(), ENOSPC);
  const std::int64_t taken = error.context().offset;
  check::is_true(taken > 700000 && taken <= 1 << 20, "the message names the first byte not written");
  check::contains(error.what(), "needed: " + std::to_string(1400000 - taken) + " bytes, free: ");
  Bytes back(700000);
  check::equal(file.read(back, 0), 700000);
  same(back, data);
  check::equal(check::throws<Error>([&] { file.write_async(data, 0).wait(); }).errno_value(), ENOSPC);
}

TEST("an unawaited write to a full device fails the close") {
  Faulty faulty({.full_after_bytes = 0});
  File file = faulty.open();
  const Bytes data = pattern(1000, 1);
  static_cast<void>(file.write_async(data, 0));
  check::equal(check::throws<Error>([&] { file.close(); }).errno_value(), ENOSPC);
  file.close();
}

TEST("a slow operation delays its own request only") {
  Faulty faulty({.slow_ns = 300'000'000, .script = [](std::uint64_t number, const Operation&) {
                   return number == 0 ? Fault::slow : Fault::none;
                 }});
  File file = faulty.open();
  const Bytes data = pattern(1000, 1);
  Request slow = file.write_async(data, 0);
  Request fast = file.write_async(data, 1000);
  fast.wait();
  check::is_true(!slow.done(), "the slow one is still under way");
  check::equal(slow.wait(), 1000);
}

TEST("a torn write is reported as whole and is not") {
  Faulty faulty(nth(Kind::write, 0, Fault::torn_write));
  File file = faulty.open();
  const Bytes data = pattern(100000, 1);
  check::equal(file.write(data, 0), 100000);
  const std::int64_t there = file.length();
  check::is_true(there > 0 && there < 100000, "only a part is there");
  Bytes back(static_cast<std::size_t>(there));
  file.read(back, 0);
  same(back, std::span(data).first(back.size()));
}

TEST("a flipped bit is one bit") {
  Faulty faulty(nth(Kind::read, 0, Fault::bit_flip));
  File file = faulty.open();
  std::vector<Bytes> parts{Bytes(1000), Bytes(1), Bytes(50000)};
  file.write(support::list_of(parts), 0);
  file.read(support::list_of(parts), 0);
  int bits = 0;
  for (const Bytes& part : parts)
    for (std::byte byte : part) bits += __builtin_popcount(std::to_integer<unsigned>(byte));
  check::equal(bits, 1);
}

TEST("a crash loses what was not flushed, and nothing else") {
  for (PageCache page_cache : {PageCache::buffered, PageCache::direct}) {
    Faulty faulty({.lose_unsynced = true});
    const Bytes flushed = pattern(300000, 1), lost = pattern(400000, 2);
    {
      File file = faulty.open(page_cache);
      file.write(flushed, 0);
      file.flush();
      file.write(std::span(lost).first(1000), 100);
      file.write_async(lost, 200000).wait();
      file.close();
    }
    check::equal(faulty.engine->crash(), 401000);
    File file = faulty.open(page_cache);
    check::equal(file.length(), 300000);
    Bytes back(300000);
    file.read(back, 0);
    same(back, flushed);
  }
}

TEST("direct parts begin and end on pages, so that they never share one with a buffered part") {
  std::atomic<int> direct_parts{0}, shared_pages{0};
  Faulty faulty({.script = [&](std::uint64_t, const Operation& o) {
    const bool moves = o.kind == Kind::read || o.kind == Kind::write;
    if (moves && !o.copies) {
      ++direct_parts;
      shared_pages += o.offset % 4096 != 0 || o.size_bytes % 4096 != 0;
    }
    return Fault::none;
  }});
  File file = faulty.open(PageCache::direct);
  if (!file.direct_available()) return;
  const Bytes data = pattern(100000, 1);
  Bytes back(100000);
  for (std::int64_t offset : {0, 512, 1600, 4096, 5000}) {
    file.write(data, offset);
    file.write_async(data, offset).wait();
    file.read(back, offset);
    same(back, data);
  }
  check::is_true(direct_parts >= 15, "there were direct parts");
  check::equal(shared_pages.load(), 0);
}

TEST("persistent interruption ends as an error, not as a hang") {
  Faulty faulty({.interrupted = 1});
  File file = faulty.open();
  Bytes data(10);
  check::equal(check::throws<Error>([&] { file.read(data, 0); }).errno_value(), EINTR);
}

int main(int argc, char** argv) {
  conformance::add("faulty threads", [] { return make_fault_engine(make_thread_engine(), harmless()); });
  try {
    static_cast<void>(make_uring_engine());
    conformance::add("faulty uring", [] { return make_fault_engine(make_uring_engine(), harmless()); });
  } catch (const Error& error) {
    std::printf("without uring: %s\n", error.what());
  }
  return check::run(argc, argv);
}
