#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "outcore/error.hpp"
#include "outcore/trace.hpp"
#include "support/check.hpp"

namespace trace = outcore::trace;
using trace::Event;
using trace::Layer;
using trace::Op;

namespace {

trace::Counter counter(Layer layer, Op op) {
  return trace::snapshot().counters[std::size_t(layer)][std::size_t(op)];
}

Event read_of(std::int64_t bytes) {
  return {.start_ns = 100, .end_ns = 150, .waited_ns = 50, .bytes = bytes};
}

/// The body runs in a forked child; its result is the child's exit status. 99 means that the body did not
/// return.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

/// Reports when static objects of the program are destroyed; the library must still be there for it.
struct LateReporter {
  ~LateReporter() {
    trace::enable_events(4);
    trace::record({.file = trace::file_id("closed late"), .op = Op::close});
    _exit(trace::events().size() == 1 && counter(Layer::file, Op::close).count > 0 ? 42 : 1);
  }
};

void record_from_threads(int threads, int each) {
  std::vector<std::thread> list;
  for (int t = 0; t < threads; ++t)
    list.emplace_back([=] {
      for (int i = 0; i < each; ++i) trace::record({.end_ns = 3, .offset = i, .bytes = t + 1});
    });
  for (auto& thread : list) thread.join();
}

}  // namespace

TEST("a recorded operation is counted under its layer and operation only") {
  trace::reset_counters();
  trace::record({.start_ns = 1000,
                 .end_ns = 1700,
                 .waited_ns = 300,
                 .bytes = 4096,
                 .op = Op::write_async,
                 .layer = Layer::device,
                 .failed = true,
                 .sequential = true});
  const auto counted = counter(Layer::device, Op::write_async);
  check::equal(counted.count, 1);
  check::equal(counted.failed, 1);
  check::equal(counted.nanoseconds, 700);
  check::equal(counted.waited_ns, 300);
  check::equal(counted.bytes, 4096);
  check::equal(counted.sequential, 1);
  std::uint64_t total = 0;
  for (const auto& layer : trace::snapshot().counters)
    for (const auto& op : layer) total += op.count;
  check::equal(total, 1);
}

TEST("bounds of size classes are exclusive") {
  trace::reset_counters();
  std::size_t expected_class = 0;
  for (const std::int64_t bound : trace::size_class_bounds) {
    trace::record(read_of(bound - 1));
    trace::record(read_of(bound));
    const auto counted = counter(Layer::file, Op::read);
    check::equal(counted.by_size[expected_class], expected_class == 0 ? 1 : 2);
    check::equal(counted.by_size[expected_class + 1], 1);
    check::equal(counted.bytes_by_size[expected_class + 1], bound);
    ++expected_class;
  }
}

TEST("count and bytes are the sums over the size classes") {
  trace::reset_counters();
  for (const std::int64_t bytes : {0, 10, 5000, 100000, 300000, 2000000, 9000000})
    trace::record(read_of(bytes));
  const auto counted = counter(Layer::file, Op::read);
  std::uint64_t count = 0, bytes = 0;
  for (std::size_t i = 0; i < trace::size_classes; ++i) {
    count += counted.by_size[i];
    bytes += counted.bytes_by_size[i];
  }
  check::equal(counted.count, 7);
  check::equal(count, 7);
  check::equal(counted.bytes, 11405010);
  check::equal(bytes, 11405010);
}

TEST("time waited can be added after the operation") {
  trace::reset_counters();
  trace::record({.end_ns = 900, .op = Op::read_async});
  trace::add_waited(Layer::file, Op::read_async, 250);
  check::equal(counter(Layer::file, Op::read_async).waited_ns, 250);
  check::equal(counter(Layer::file, Op::read_async).count, 1);
}

TEST("a blocking operation waits for its whole duration") {
  trace::reset_counters();
  trace::enable_events(1);
  trace::record({.start_ns = 100, .end_ns = 400, .op = Op::flush});
  check::equal(counter(Layer::file, Op::flush).waited_ns, 300);
  check::equal(trace::events().at(0).waited_ns, 300);
}

TEST("of quick requests few are timed, and stand for the others") {
  trace::disable_events();
  trace::reset_counters();
  constexpr int requests = 10'000;
  int timed = 0;
  for (int i = 0; i < requests; ++i) {
    Event event{.waited_ns = 100, .bytes = 8, .stands_for = trace::timed_for()};
    if (event.stands_for > 0) event.start_ns = 1000, event.end_ns = 1100, ++timed;
    trace::record(event);
  }
  const auto reads = counter(Layer::file, Op::read);
  check::equal(reads.count, std::uint64_t(requests));
  check::equal(reads.bytes, 8 * std::uint64_t(requests));
  check::is_true(timed < requests / 10, "few");
  const std::uint64_t all = 100 * std::uint64_t(requests);
  check::is_true(reads.nanoseconds > all - 2000 && reads.nanoseconds < all + 2000, "for all, but for a few");
  check::equal(reads.waited_ns, reads.nanoseconds);
}

TEST("while events are recorded every request is timed") {
  for (int i = 0; i < 1000; ++i) (void)trace::timed_for();
  trace::enable_events(1);
  for (int i = 0; i < 100; ++i) check::equal(int(trace::timed_for()), 1);
  trace::disable_events();
}

TEST("an operation that ends before it starts takes no time") {
  trace::reset_counters();
  trace::record({.start_ns = 10, .end_ns = 5, .bytes = -1});
  check::equal(counter(Layer::file, Op::read).nanoseconds, 0);
  check::equal(counter(Layer::file, Op::read).bytes, 0);
}

TEST("a layer or operation out of range is ignored") {
  trace::reset_counters();
  trace::record({.op = Op::count});
  trace::record({.layer = Layer::count});
  trace::add_waited(Layer::count, Op::count, 5);
  for (const auto& layer : trace::snapshot().counters)
    for (const auto& op : layer) check::equal(op.count + op.waited_ns, 0);
}

TEST("reset sets every counter to zero") {
  trace::record(read_of(5000));
  trace::reset_counters();
  const auto counted = counter(Layer::file, Op::read);
  check::equal(counted.count + counted.nanoseconds + counted.waited_ns + counted.bytes, 0);
}

TEST("totals are exact with many threads at once") {
  trace::reset_counters();
  record_from_threads(40, 1000);
  const auto counted = counter(Layer::file, Op::read);
  check::equal(counted.count, 40000);
  check::equal(counted.nanoseconds, 120000);
  check::equal(counted.waited_ns, 120000);
  check::equal(counted.bytes, 1000 * 40 * 41 / 2);
}

TEST("without events enabled nothing is stored") {
  trace::disable_events();
  const auto before = trace::events().size();
  trace::record(read_of(1));
  check::equal(trace::events().size(), before);
}

TEST("an event comes back with all its fields and its thread") {
  trace::enable_events(8);
  trace::record({.start_ns = 1,
                 .end_ns = 9,
                 .waited_ns = 3,
                 .offset = 4,
                 .bytes = 5,
                 .file = 6,
                 .thread = 77,
                 .op = Op::write_async,
                 .layer = Layer::device,
                 .failed = true,
                 .sequential = true});
  const auto events = trace::events();
  check::equal(events.size(), 1);
  const Event& event = events[0];
  check::equal(event.start_ns, 1);
  check::equal(event.end_ns, 9);
  check::equal(event.waited_ns, 3);
  check::equal(event.offset, 4);
  check::equal(event.bytes, 5);
  check::equal(event.file, 6);
  check::equal(event.thread, 0);
  check::is_true(event.op == Op::write_async && event.layer == Layer::device, "operation and layer");
  check::is_true(event.failed && event.sequential, "flags");
}

TEST("threads have numbers of their own, the main thread 0") {
  trace::enable_events(8);
  for (int i = 0; i < 2; ++i) std::thread([] { trace::record(read_of(1)); }).join();
  trace::record(read_of(1));
  const auto events = trace::events();
  check::equal(events.size(), 3);
  check::is_true(events[0].thread != events[1].thread, "two threads, two numbers");
  check::is_true(events[0].thread != 0 && events[1].thread != 0, "only the main thread is 0");
  check::equal(events[2].thread, 0);
}

TEST("a full buffer keeps the first events and counts the others as dropped") {
  trace::reset_counters();
  trace::enable_events(100);
  for (int i = 0; i < 130; ++i) trace::record({.offset = i});
  check::equal(trace::events().size(), 100);
  check::equal(trace::events().back().offset, 99);
  check::equal(trace::dropped_events(), 30);
  check::equal(counter(Layer::file, Op::read).count, 130);
}

TEST("stored and dropped add up with many threads at once") {
  trace::enable_events(5000);
  record_from_threads(8, 1000);
  check::equal(trace::events().size(), 5000);
  check::equal(trace::dropped_events(), 3000);
}

TEST("disabling stops recording and keeps the events") {
  trace::enable_events(8);
  trace::record(read_of(1));
  trace::disable_events();
  trace::record(read_of(2));
  check::equal(trace::events().size(), 1);
  check::equal(trace::dropped_events(), 0);
}

TEST("enabling again starts with an empty buffer") {
  trace::enable_events(1);
  trace::record(read_of(1));
  trace::record(read_of(1));
  trace::enable_events(2);
  check::equal(trace::events().size(), 0);
  check::equal(trace::dropped_events(), 0);
}

TEST("enabling, disabling and reading are safe while threads record") {
  std::atomic<bool> stop = false;
  std::vector<std::thread> recorders;
  for (int t = 0; t < 3; ++t)
    recorders.emplace_back([&] {
      while (!stop) trace::record({.start_ns = 7, .end_ns = 7, .offset = 7, .bytes = 7});
    });
  for (int i = 0; i < 200; ++i) {
    trace::enable_events(64);
    std::this_thread::yield();
    for (const Event& event : trace::events())
      check::is_true(event.start_ns == 7 && event.offset == 7 && event.bytes == 7, "a torn event");
    if (i % 2) trace::disable_events();
  }
  stop = true;
  for (auto& thread : recorders) thread.join();
}

TEST("a buffer that cannot be had is ENOMEM and leaves the old one") {
  trace::enable_events(4);
  trace::record(read_of(1));
  for (const std::size_t capacity : {std::size_t(1) << 55, ~std::size_t(0)}) {
    const auto error = check::throws<outcore::Error>([&] { trace::enable_events(capacity); });
    check::equal(error.errno_value(), ENOMEM);
    check::contains(error.what(), std::to_string(capacity));
  }
  check::equal(trace::events().size(), 1);
}

TEST("a buffer of no events is EINVAL") {
  check::equal(check::throws<outcore::Error>([] { trace::enable_events(0); }).errno_value(), EINVAL);
}

TEST("a file name has one number, and the number the name") {
  const auto a = trace::file_id("/scratch/a"), b = trace::file_id("/scratch/b");
  check::is_true(a != b, "two names, two numbers");
  check::equal(trace::file_id("/scratch/a"), a);
  check::equal(trace::file_name(a), "/scratch/a");
  check::equal(trace::file_name(b), "/scratch/b");
}

TEST("number 0 is no file, an unknown number has no name") {
  check::equal(trace::file_id(""), 0);
  check::equal(trace::file_name(0), "");
  check::equal(trace::file_name(~0u), "");
}

TEST("threads that name the same files agree on the numbers") {
  std::vector<std::vector<std::uint32_t>> ids(4);
  std::vector<std::thread> threads;
  for (auto& mine : ids)
    threads.emplace_back([&mine] {
      for (int i = 0; i < 500; ++i) mine.push_back(trace::file_id("same" + std::to_string(i)));
    });
  for (auto& thread : threads) thread.join();
  for (const auto& mine : ids) check::is_true(mine == ids[0], "different numbers");
}

TEST("names are bounded: beyond the limit all share one number") {
  check::equal(in_child([] {
                 for (int i = 0; i < 70000; ++i) (void)trace::file_id("many" + std::to_string(i));
                 const auto last = trace::file_id("one more");
                 return last == trace::file_id("and another") &&
                                trace::file_name(last) == trace::other_files &&
                                trace::file_name(trace::file_id("many0")) == "many0"
                            ? 0
                            : 1;
               }),
               0);
}

TEST("every layer and operation has a name") {
  check::equal(std::string(trace::name(Layer::device)), "device");
  check::equal(std::string(trace::name(Op::open)), "open");
  check::equal(std::string(trace::name(Op::write_async)), "write_async");
  check::equal(std::string(trace::name(Op::stat)), "stat");
  check::equal(std::string(trace::name(Op::count)), "?");
}

TEST("time goes forward and starts with the process") {
  const auto taken = trace::snapshot();
  check::is_true(taken.process_start_ns > 0, "start");
  check::is_true(taken.taken_ns >= taken.process_start_ns, "taken after the start");
  check::is_true(trace::now_ns() >= taken.taken_ns, "now after taken");
}

TEST("the device is busy while transfers are under way, however many") {
  trace::reset_counters();
  const auto start_ns = trace::now_ns();
  trace::transfer_begins(false);
  trace::transfer_begins(false);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  trace::transfer_ends(false);
  const auto meanwhile = trace::snapshot();
  trace::transfer_ends(false);
  const auto elapsed_ns = trace::now_ns() - start_ns;
  const auto after = trace::snapshot();
  check::is_true(meanwhile.device_read_busy_ns >= 2'000'000, "busy time goes on while one is under way");
  check::is_true(after.device_read_busy_ns >= meanwhile.device_read_busy_ns, "busy until the last one ends");
  check::is_true(after.device_read_busy_ns <= elapsed_ns, "overlapping transfers count once");
  check::equal(after.device_write_busy_ns, 0);
}

TEST("an idle device is not busy") {
  trace::reset_counters();
  trace::transfer_begins(true);
  trace::transfer_ends(true);
  const auto busy_ns = trace::snapshot().device_write_busy_ns;
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  check::equal(trace::snapshot().device_write_busy_ns, busy_ns);
}

TEST("busy time starts again at a reset, also in the middle of a transfer") {
  trace::transfer_begins(true);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const auto start_ns = trace::now_ns();
  trace::reset_counters();
  trace::transfer_ends(true);
  const auto elapsed_ns = trace::now_ns() - start_ns;
  check::is_true(trace::snapshot().device_write_busy_ns <= elapsed_ns, "time before the reset is counted");
}

TEST("busy time never exceeds the time elapsed with many threads at once") {
  trace::reset_counters();
  const auto start_ns = trace::now_ns();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 20000; ++i) {
        trace::transfer_begins(false);
        if (i % 1000 == 0) (void)trace::snapshot();
        trace::transfer_ends(false);
      }
    });
  for (auto& thread : threads) thread.join();
  const auto busy_ns = trace::snapshot().device_read_busy_ns;
  check::is_true(busy_ns > 0 && busy_ns <= trace::now_ns() - start_ns, "impossible busy time");
}

TEST("a child forked in the middle of a transfer is not busy") {
  trace::transfer_begins(false);
  const int status = in_child([] { return trace::snapshot().device_read_busy_ns == 0 ? 0 : 1; });
  trace::transfer_ends(false);
  check::equal(status, 0);
}

TEST("a forked child starts from zero and goes on recording") {
  trace::reset_counters();
  trace::enable_events(4);
  const auto file = trace::file_id("of the parent");
  for (int i = 0; i < 6; ++i) trace::record(read_of(1));
  check::equal(in_child([&] {
                 if (counter(Layer::file, Op::read).count != 0) return 1;
                 if (!trace::events().empty() || trace::dropped_events() != 0) return 2;
                 if (trace::file_name(file) != "of the parent") return 3;
                 trace::record(read_of(9));
                 if (counter(Layer::file, Op::read).bytes != 9) return 4;
                 return trace::events().size() == 1 && trace::events()[0].bytes == 9 ? 0 : 5;
               }),
               0);
  check::equal(counter(Layer::file, Op::read).count, 6);
  check::equal(trace::events().size(), 4);
}

TEST("a fork while other threads record and name files does not hang the child") {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    while (!stop) trace::record(read_of(1));
  });
  threads.emplace_back([&] {
    while (!stop) (void)trace::file_id("busy");
  });
  for (int i = 0; i < 20; ++i)
    if (in_child([] {
          trace::enable_events(2);
          (void)trace::file_id("busy");
          trace::disable_events();
          return 0;
        }) != 0) {
      stop = true;
      for (auto& thread : threads) thread.join();
      check::fail("the child did not come back", std::source_location::current());
    }
  stop = true;
  for (auto& thread : threads) thread.join();
}

TEST("static destructors may still report") {
  check::equal(in_child([] {
                 static LateReporter reporter;
                 std::exit(0);
                 return 1;
               }),
               42);
}

TEST_MAIN
