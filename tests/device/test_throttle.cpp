// The throttled storage: tests set its clock, and check when requests end. The engine must do what every
// engine does, and hold results back.
#include <algorithm>

#include "conformance/engine.hpp"
#include "device/throttle.hpp"
#include "outcore/trace.hpp"

using namespace outcore;
using namespace outcore::device;
using support::Bytes;
using support::pattern;
using support::same;
using support::Scratch;

namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::int64_t kib = 1024;

/// A kilobyte takes a millisecond, and every request 5 ms more.
Throttle slow(unsigned disks = 1, std::int64_t stripe_bytes = 1000) {
  return {.bandwidth_bytes_per_s = 1e6, .latency_ns = 5 * ms, .disks = disks, .stripe_bytes = stripe_bytes};
}

}  // namespace

TEST("a request takes its bytes at the bandwidth, and the latency") {
  DiskClock clock(slow());
  check::equal(clock.book(100 * ms, 0, 20'000), 125 * ms);
}

TEST("a disk moves one request after another, while latencies overlap") {
  DiskClock clock(slow());
  check::equal(clock.book(0, 0, 10'000), 15 * ms);
  check::equal(clock.book(1 * ms, 0, 10'000), 25 * ms);
  check::equal(clock.book(2 * ms, 0, 10'000), 35 * ms);
}

TEST("a disk that was idle does not catch up") {
  DiskClock clock(slow());
  clock.book(0, 0, 10'000);
  check::equal(clock.book(1000 * ms, 0, 10'000), 1015 * ms);
}

TEST("what moves nothing takes the latency, also when the disk is busy") {
  DiskClock clock(slow());
  clock.book(0, 0, 1'000'000);
  check::equal(clock.book(1 * ms, 0, 0), 6 * ms);
}

TEST("a request over several stripes is moved by several disks at once") {
  DiskClock clock(slow(4));
  check::equal(clock.book(0, 0, 8'000), 7 * ms);                      // two stripes on each disk
  check::equal(clock.book(100 * ms, 500, 1'000), 105 * ms + ms / 2);  // half a stripe on each of two
}

TEST("requests on different disks do not wait for one another, those on one do") {
  DiskClock clock(slow(2));
  check::equal(clock.book(0, 0, 1'000), 6 * ms);
  check::equal(clock.book(0, 1'000, 1'000), 6 * ms);
  check::equal(clock.book(0, 2'000, 1'000), 7 * ms);
}

TEST("every byte lies on one disk, wherever a request begins and ends") {
  for (unsigned disks : {1U, 2U, 3U, 5U}) {
    for (std::int64_t offset : {0, 1, 999, 1000, 1001, 123'456})
      for (std::int64_t size : {1, 999, 1000, 1001, 50'000}) {
        std::vector<std::int64_t> part(disks);
        for (std::int64_t at = offset; at < offset + size; ++at) ++part[std::size_t(at / 1000 % disks)];
        DiskClock clock(slow(disks));
        const auto most = std::uint64_t(*std::max_element(part.begin(), part.end()));
        check::equal(clock.book(0, offset, size), most * 1000 + 5 * ms);
      }
  }
}

TEST("clocks of one file are one clock") {
  Scratch scratch;
  Throttle shared = slow();
  shared.clock = scratch.file("clock");
  DiskClock here(shared), there(shared), alone(slow());
  const std::uint64_t now = trace::now_ns();
  check::equal(here.book(now, 0, 10'000), now + 15 * ms);
  check::equal(there.book(now, 0, 10'000), now + 25 * ms);
  check::equal(alone.book(now, 0, 10'000), now + 15 * ms);
}

TEST("threads of one disk get its bandwidth together") {
  DiskClock clock(slow());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) clock.book(0, 0, 1'000);
    });
  for (std::thread& thread : threads) thread.join();
  check::equal(clock.book(0, 0, 1'000), 4001 * ms + 5 * ms);
}

TEST("a clock of an earlier boot, and a file that is no clock, are refused") {
  Scratch scratch;
  Throttle shared = slow();
  shared.clock = scratch.file("clock");
  DiskClock(shared).book(trace::now_ns() + 3'600'000 * ms, 0, 1);
  check::contains(check::throws<Error>([&] { DiskClock clock(shared); }).what(), "earlier boot");
  shared.clock = scratch.file("text");
  File(shared.clock).write(pattern(100, 1), 0);
  check::contains(check::throws<Error>([&] { DiskClock clock(shared); }).what(), "another file");
}

TEST("settings are read, and said") {
  const Throttle t = Throttle::parse("bandwidth=1.5MB,latency=20us,disks=4,stripe=32KiB,clock=/a,b");
  check::equal(t.bandwidth_bytes_per_s, 1.5e6);
  check::equal(t.latency_ns, 20'000);
  check::equal(t.disks, 4U);
  check::equal(t.stripe_bytes, 32 * kib);
  check::equal(t.clock, std::string("/a,b"));
  check::equal(t.describe(),
               std::string("4 disks of 1.5 MB/s, striped by 32768 bytes, latency 0.02 ms, shared"));
  check::equal(Throttle::parse("bandwidth=1GiB").describe(),
               std::string("a disk of 1073.74 MB/s, latency 0 ms, of each process"));
}

TEST("wrong settings are refused with the one that is wrong") {
  for (const char* text :
       {"", "latency=1ms", "bandwidth=0", "bandwidth=-1MB", "bandwidth=nan", "bandwidth=1 MB",
        "bandwidth=1Mb", "bandwidth=1MB,latency=1", "bandwidth=1MB,disks=0", "bandwidth=1MB,disks=65",
        "bandwidth=1MB,disks=1.5", "bandwidth=1MB,stripe=1", "bandwidth=1MB,speed=2", "100MB"})
    check::equal(check::throws<Error>([&] { static_cast<void>(Throttle::parse(text)); }).errno_value(),
                 EINVAL);
  check::contains(
      check::throws<Error>([] { static_cast<void>(Throttle::parse("bandwidth=1MB,disks=x")); }).what(),
      "'disks=x'");
}

TEST("an asynchronous request ends late, and its caller goes on at once") {
  const auto engine =
      make_throttled_engine(make_thread_engine(2), {.bandwidth_bytes_per_s = 1e9, .latency_ns = 200 * ms});
  Scratch scratch;
  File file(scratch.file(), {.page_cache = PageCache::buffered, .engine = engine.get()});
  const Bytes data = pattern(4000, 1);
  const std::uint64_t begin = trace::now_ns();
  std::vector<Request> requests;
  for (int i = 0; i < 20; ++i) requests.push_back(file.write_async(data, i * 4000));
  check::is_true(trace::now_ns() - begin < 200 * ms, "none of the calls waited");
  check::is_true(!requests[0].done(), "nothing is complete yet");
  wait_all(requests);
  const std::uint64_t took = trace::now_ns() - begin;
  check::is_true(took >= 200 * ms, "held back for the latency");
  check::is_true(took < 2000 * ms, "latencies overlap, also on two threads");
}

TEST("a blocking request takes as long as the storage") {
  const auto engine =
      make_throttled_engine(make_thread_engine(2), {.bandwidth_bytes_per_s = 1e6, .latency_ns = 10 * ms});
  Scratch scratch;
  File file(scratch.file(), {.page_cache = PageCache::buffered, .engine = engine.get()});
  const std::uint64_t begin = trace::now_ns();
  file.write(pattern(20'000, 1), 0);
  check::is_true(trace::now_ns() - begin >= 30 * ms, "20 ms of moving and 10 of latency");
}

TEST("what fails is not held back") {
  const auto engine =
      make_throttled_engine(make_thread_engine(2), {.bandwidth_bytes_per_s = 1, .latency_ns = 1000 * ms});
  Scratch scratch;
  std::byte byte{};
  iovec list{&byte, 1};
  const std::uint64_t begin = trace::now_ns();
  check::equal(
      engine->run({.kind = Operation::Kind::read, .fd = -1, .size_bytes = 1, .list = &list, .list_count = 1}),
      -EBADF);
  check::is_true(trace::now_ns() - begin < 1000 * ms, "at once");
}

TEST("the page cache is none of the storage") {
  const auto engine = make_throttled_engine(make_thread_engine(2), {.bandwidth_bytes_per_s = 1e9});
  Scratch scratch;
  File file(scratch.file(), {.page_cache = PageCache::buffered, .engine = engine.get()});
  file.write(pattern(100'000, 1), 0);
  check::is_true(!file.resident(0, 100'000), "not resident");
}

int main(int argc, char** argv) {
  const Throttle quick{.bandwidth_bytes_per_s = 2e9, .latency_ns = 20'000, .disks = 2, .stripe_bytes = 4096};
  conformance::add("throttled threads", [=] { return make_throttled_engine(make_thread_engine(), quick); });
  try {
    static_cast<void>(make_uring_engine());
    conformance::add("throttled uring", [=] { return make_throttled_engine(make_uring_engine(), quick); });
  } catch (const Error& error) {
    std::printf("without uring: %s\n", error.what());
  }
  return check::run(argc, argv);
}
