// What the device layer reports.
#include <unistd.h>

#include <vector>

#include "device/fault.hpp"
#include "device/file.hpp"
#include "device/support.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/engine.hpp"
#include "outcore/trace.hpp"
#include "support/check.hpp"

namespace trace = outcore::trace;
namespace device = outcore::device;
using trace::Layer;
using trace::Op;

namespace {

constexpr std::int64_t block = 64 << 10;

/// An open file. Counters start from zero, and events are recorded.
struct Fixture {
  support::Scratch scratch;
  std::vector<std::byte> memory = std::vector<std::byte>(block);
  device::File file;

  explicit Fixture(device::Engine* engine = nullptr) : file(scratch.file(), {.engine = engine}) {
    trace::reset_counters();
    trace::enable_events(100);
  }
  ~Fixture() { trace::disable_events(); }
};

trace::Counter counter(Op op) {
  return trace::snapshot().counters[std::size_t(Layer::device)][std::size_t(op)];
}

}  // namespace

TEST("blocking transfers are counted with their bytes, and keep the device busy") {
  Fixture f;
  f.file.write(f.memory, 0);
  f.file.read(f.memory, 0);
  const auto taken = trace::snapshot();
  check::equal(counter(Op::write).count, 1);
  check::equal(counter(Op::write).bytes, block);
  check::equal(counter(Op::read).count, 1);
  check::equal(counter(Op::read).bytes, block);
  check::is_true(taken.device_read_busy_ns > 0, "busy reading");
  check::is_true(taken.device_write_busy_ns > 0, "busy writing");
}

TEST("nonblocking transfers are counted once, and the device is idle after them") {
  Fixture f;
  f.file.write_async(f.memory, 0).wait();
  auto request = f.file.read_async(f.memory, 0);
  request.wait();
  request.wait();
  check::equal(counter(Op::write_async).count, 1);
  check::equal(counter(Op::read_async).count, 1);
  check::equal(counter(Op::read_async).bytes, block);
  const auto busy_ns = trace::snapshot().device_read_busy_ns;
  usleep(2000);
  check::equal(trace::snapshot().device_read_busy_ns, busy_ns);
}

TEST("requests are sequential in the order in which they are made") {
  Fixture f;
  std::vector<outcore::Request> requests;
  for (int i = 0; i < 8; ++i) requests.push_back(f.file.write_async(f.memory, i * block));
  outcore::wait_all(requests);
  check::equal(counter(Op::write_async).sequential, 7);
  f.file.read(f.memory, block);
  f.file.read(f.memory, 2 * block);
  f.file.read(f.memory, 0);
  check::equal(counter(Op::read).sequential, 1);
}

TEST("time waited for any request is booked to the one that came") {
  const auto engine =
      device::make_fault_engine(device::make_thread_engine(1), {.slow = 1.0, .slow_ns = 2'000'000});
  Fixture f(engine.get());
  std::vector<outcore::Request> requests{f.file.write_async(f.memory, 0)};
  outcore::wait_any(requests);
  const auto waited_ns = counter(Op::write_async).waited_ns;
  check::is_true(waited_ns > 0, "time waited");
  requests[0].wait();
  outcore::wait_any(requests);
  check::equal(counter(Op::write_async).waited_ns, waited_ns);
}

TEST("events name the file and the place") {
  Fixture f;
  f.file.write(f.memory, 3 * block);
  const auto events = trace::events();
  check::equal(events.size(), 1);
  check::equal(trace::file_name(events[0].file), f.scratch.file());
  check::equal(events[0].offset, 3 * block);
  check::equal(events[0].bytes, block);
  check::is_true(events[0].end_ns >= events[0].start_ns, "time");
}

TEST("a short read counts the bytes that were there") {
  Fixture f;
  f.file.write(f.memory, 0);
  f.file.read(f.memory, block - 10);
  check::equal(counter(Op::read).bytes, 10);
}

TEST("a failed transfer is counted as failed and leaves the device idle") {
  const auto engine = device::make_fault_engine(device::make_thread_engine(1), {.io_error = 1.0});
  Fixture f(engine.get());
  check::throws<outcore::Error>([&] { f.file.write(f.memory, 0); });
  auto request = f.file.write_async(f.memory, 0);
  check::throws<outcore::Error>([&] { request.wait(); });
  check::equal(counter(Op::write).failed, 1);
  check::equal(counter(Op::write_async).failed, 1);
  check::equal(counter(Op::write).bytes + counter(Op::write_async).bytes, 0);
  const auto busy_ns = trace::snapshot().device_write_busy_ns;
  usleep(2000);
  check::equal(trace::snapshot().device_write_busy_ns, busy_ns);
}

TEST_MAIN
