// Small files are complete or do not exist.
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <vector>

#include "device/fault.hpp"
#include "device/support.hpp"
#include "outcore/error.hpp"
#include "store/durable.hpp"
#include "support/check.hpp"

using namespace outcore;
using namespace outcore::store;
using device::Fault;
using device::Operation;
using support::Bytes;
using support::pattern;
using support::Scratch;

namespace {

/// Every operation fails in this way from the first on.
std::unique_ptr<device::FaultEngine> failing(Operation::Kind kind, Fault fault) {
  return device::make_fault_engine(device::make_thread_engine(1), {.script = [=](auto, const Operation& o) {
                                     return o.kind == kind ? fault : Fault::none;
                                   }});
}

}  // namespace

TEST("what is written is read, again and again") {
  const Scratch scratch;
  for (const std::size_t size : {0, 1, 100, 100'000}) {
    const Bytes bytes = pattern(size, size);
    write_durably(scratch.file(), bytes);
    check::is_true(read_whole(scratch.file(), 100'000) == bytes);
  }
  check::is_true(!std::filesystem::exists(scratch.file() + ".new"), "nothing is left beside it");
}

TEST("a failure leaves what was there, and nothing beside it") {
  const Scratch scratch;
  const Bytes before = pattern(1000, 1);
  write_durably(scratch.file(), before);
  for (const auto& [kind, fault, expected] : {std::tuple{Operation::Kind::write, Fault::io_error, EIO},
                                              {Operation::Kind::write, Fault::full, ENOSPC},
                                              {Operation::Kind::sync, Fault::io_error, EIO}}) {
    const auto engine = failing(kind, fault);
    const auto write = [&] { write_durably(scratch.file(), pattern(2000, 2), engine.get()); };
    check::equal(check::throws<Error>(write).errno_value(), expected);
    check::is_true(read_whole(scratch.file(), 1000) == before);
    check::is_true(!std::filesystem::exists(scratch.file() + ".new"));
  }
}

TEST("when this returns, a crash loses nothing of it") {
  const Scratch scratch;
  const auto engine = device::make_fault_engine(device::make_thread_engine(1), {.lose_unsynced = true});
  const Bytes bytes = pattern(50'000, 1);
  write_durably(scratch.file(), bytes, engine.get());
  check::equal(engine->crash(), 0);
  check::is_true(read_whole(scratch.file(), 100'000) == bytes);
}

TEST("a file that is flushed later is kept from then on") {
  const Scratch scratch;
  const auto engine = device::make_fault_engine(device::make_thread_engine(1), {.lose_unsynced = true});
  const Bytes bytes = pattern(50'000, 1);
  device::File file = write_unsynced(scratch.file(), bytes, engine.get());
  file.flush();
  check::equal(engine->crash(), 0);
  check::is_true(read_whole(scratch.file(), 100'000) == bytes);
}

TEST("of what is synced together all is run, and the first error thrown") {
  std::atomic<int> runs = 0;
  std::vector<std::function<void()>> syncs(30, [&] { ++runs; });
  const auto fail = [&](int errno_value) { throw Error(errno_value, {.attempted = "flush"}); };
  syncs[5] = [&] { fail(EIO); };
  syncs[9] = [&] { fail(ENOSPC); };
  check::equal(check::throws<Error>([&] { sync_together(syncs); }).errno_value(), EIO);
  check::equal(runs.load(), 28);
  sync_together({});
}

TEST("what a crash left beside the file does not matter") {
  const Scratch scratch;
  write_durably(scratch.file() + ".new", pattern(5000, 1));
  const Bytes bytes = pattern(100, 2);
  write_durably(scratch.file(), bytes);
  check::is_true(read_whole(scratch.file(), 1000) == bytes);
}

TEST("a directory that is not there is named") {
  const Scratch scratch;
  const auto write = [&] { write_durably(scratch.path() + "/no/file", pattern(10, 1)); };
  const Error error = check::throws<Error>(write);
  check::equal(error.errno_value(), ENOENT);
  check::contains(error.what(), scratch.path() + "/no/file");
  check::equal(check::throws<Error>([&] { sync_directory(scratch.path() + "/no"); }).errno_value(), ENOENT);
}

TEST("a file larger than expected is not read") {
  const Scratch scratch;
  write_durably(scratch.file(), pattern(1001, 1));
  const Error error = check::throws<Error>([&] { static_cast<void>(read_whole(scratch.file(), 1000)); });
  check::equal(error.errno_value(), EFBIG);
  check::contains(error.what(), "at most 1000");
}

TEST_MAIN
