// Records of any size, put and got by all processes.
#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "device/fault.hpp"
#include "file/shared_support.hpp"
#include "outcore/record_file.hpp"

using namespace shared;
using file::RecordFile;
using file::RecordFileOptions;

namespace {

RecordFileOptions options(std::int64_t records) {
  return {.records = records, .placement = Placement::local};
}

/// Bytes that are all equal, so that a mixture of two records is recognised.
Bytes uniform(std::size_t size, int value) {
  return Bytes(size, static_cast<std::byte>(value));
}

}  // namespace

TEST("records of any process, of any size, grow and shrink as in a dictionary") {
  run_all([](World& world) {
    RecordFile file(world, "model", options(40));
    std::map<std::int64_t, Bytes> model;
    std::mt19937_64 random(11);  // the same at all
    for (int turn = 0; turn < 12; ++turn) {
      std::vector<Request> puts;
      std::vector<Bytes> data;
      data.reserve(20);
      std::map<std::int64_t, int> writer;
      for (int k = 0; k < 20; ++k) {
        const auto record = static_cast<std::int64_t>(random() % 40);
        const auto size = random() % (k % 7 == 0 ? 300'000 : 3000);
        const auto process = static_cast<int>(random() % static_cast<unsigned>(world.size()));
        const Bytes bytes = pattern(size, static_cast<unsigned>(random()));
        const bool erases = random() % 8 == 0;
        if (!writer.emplace(record, process).second) continue;
        if (erases)
          model.erase(record);
        else
          model[record] = bytes;
        if (process != world.rank()) continue;
        data.push_back(bytes);
        if (erases)
          file.erase(record);
        else if (k % 2 == 0)
          file.put(record, data.back());
        else
          puts.push_back(file.put_async(record, data.back()));
      }
      file.sync();
      world.barrier();
      for (std::int64_t record = 0; record < 40; ++record) {
        const auto found = model.find(record);
        check::equal(file.size(record).has_value(), found != model.end());
        if (found == model.end()) continue;
        check::equal(*file.size(record), std::ssize(found->second));
        check::is_true(*file.capacity(record) >= std::ssize(found->second));
        check::is_true(file.get(record) == found->second);
        Bytes buffer(static_cast<std::size_t>(*file.capacity(record)));
        auto get = file.get_async(record, buffer);
        check::equal(get.wait(), std::ssize(found->second));
        buffer.resize(found->second.size());
        check::is_true(buffer == found->second);
      }
      world.barrier();
    }
    file.close();
  });
}

TEST("a record put by several processes at once is that of one of them, and never torn") {
  for (const bool apart : {false, true})
    run(3, apart, [](World& world) {
      RecordFile file(world, "contended", options(2));
      std::mt19937_64 random(static_cast<unsigned>(world.rank()));
      file.put(0, uniform(100, 1));
      for (int turn = 0; turn < 300; ++turn) {
        file.put(0, uniform(1 + random() % 5000, static_cast<int>(random() % 200)));
        const Bytes seen = file.get(0);
        check::is_true(std::ranges::all_of(seen, [&](std::byte each) { return each == seen.front(); }));
      }
      world.barrier();
      const Bytes last = file.get(0);
      check::is_true(std::ranges::all_of(last, [&](std::byte each) { return each == last.front(); }));
      file.close();
    });
}

TEST("space of old versions is used again") {
  run(2, true, [](World& world) {
    RecordFile file(world, "again", options(10));
    std::mt19937_64 random(5);
    for (int turn = 0; turn < 200; ++turn)
      for (std::int64_t record = world.rank(); record < 10; record += world.size())
        file.put(record, pattern(1000 + random() % 50'000));
    world.barrier();
    check::is_true(file.taken_bytes() <= 4 << 20);
    file.close();
  });
}

TEST("what is not there, out of range or too long is an error") {
  run(2, true, [](World& world) {
    RecordFile file(world, "errors", options(5));
    const auto number = [](const std::function<void()>& call) {
      return check::throws<Error>(call).errno_value();
    };
    check::equal(number([&] { (void)file.get(3); }), ENOENT);
    check::is_true(!file.size(3) && !file.capacity(3));
    check::equal(number([&] { (void)file.get(5); }), EINVAL);
    check::equal(number([&] { file.put(-1, {}); }), EINVAL);
    world.barrier();
    if (world.rank() == 0) file.put(3, pattern(1000));
    world.barrier();
    Bytes small(999);
    check::equal(number([&] { file.get(3, small); }), EMSGSIZE);
    check::equal(number([&] { file.get_async(3, small).wait(); }), EMSGSIZE);
    file.erase(4);
    file.close();
    check::equal(number([&] { (void)file.get(3); }), EBADF);
    check::equal(number([&] { RecordFile(world, "none", options(0)); }), EINVAL);
    check::equal(number([&] { RecordFile(world, "differ", options(1 + world.rank())); }), EINVAL);
  });
}

TEST("an empty record is a record") {
  run(1, false, [](World& world) {
    RecordFile file(world, "empty", options(1));
    file.put(0, {});
    check::equal(*file.size(0), 0);
    check::is_true(file.get(0).empty());
    file.close();
  });
}

TEST("a put that fails leaves the record as it was, and its space is used again") {
  run(2, true, [](World& world) {
    std::atomic<bool> full{false};
    const auto engine = device::make_fault_engine(
        device::make_thread_engine(1), {.script = [&](std::uint64_t, const device::Operation& operation) {
          return full && operation.kind == device::Operation::Kind::write ? device::Fault::full
                                                                          : device::Fault::none;
        }});
    RecordFileOptions with_faults = options(4);
    with_faults.engine = engine.get();
    RecordFile file(world, "full", with_faults);
    const Bytes before = pattern(5000, 1), after = pattern(200'000, 2);
    if (world.rank() == 0) file.put(0, before);
    world.barrier();
    full = true;
    world.barrier();
    if (world.rank() == 0) {
      check::equal(check::throws<Error>([&] { file.put(0, after); }).errno_value(), ENOSPC);
      (void)file.put_async(0, after);
      check::equal(check::throws<Error>([&] { file.sync(); }).errno_value(), ENOSPC);
    }
    world.barrier();
    full = false;
    world.barrier();
    check::is_true(file.get(0) == before);
    world.barrier();
    if (world.rank() == 0) file.put(0, after);
    world.barrier();
    check::is_true(file.get(0) == after);
    check::equal(file.taken_bytes(), 1 << 20);
    file.close();
  });
}

TEST("the hard limit holds for what is taken") {
  run(2, true, [](World& world) {
    RecordFileOptions limited = options(100);
    limited.hard_limit_bytes = 100'000;
    RecordFile file(world, "limit", limited);
    if (world.rank() == 0) {
      const Bytes bytes = pattern(10'000);
      std::int64_t put = 0;
      const auto error = check::throws<Error>([&] {
        for (; put < 100; ++put) file.put(put, bytes);
      });
      check::equal(error.errno_value(), EFBIG);
      check::is_true(put >= 7 && put < 10);
      for (std::int64_t record = 0; record < put; ++record) check::is_true(file.get(record) == bytes);
    }
    world.barrier();
    file.close();
  });
}

TEST("a record that finds no room does not take that of another process") {
  run(2, true, [](World& world) {
    RecordFileOptions limited = options(400);
    limited.hard_limit_bytes = 32 << 20;
    RecordFile file(world, "room", limited);
    const Bytes large(std::size_t{33} << 20), small = pattern(50'000);
    if (world.rank() == 0)
      for (int i = 0; i < 100; ++i)
        check::equal(check::throws<Error>([&] { file.put(0, large); }).errno_value(), EFBIG);
    else
      for (int i = 1; i < 400; ++i) file.put(i, small);  // two thirds of the limit
    world.barrier();
    for (int i = 1; i < 400; ++i) check::is_true(file.get(i) == small);
    file.close();
  });
}

TEST("where a request cannot be waited for it goes on, and may be waited for elsewhere") {
  run(2, true, [](World& world) {
    RecordFile file(world, "records", options(4));
    const auto bytes = pattern(3'000'000);
    std::vector<Request> begun;
    std::vector<int> refused;
    const auto waits = world.register_procedure("put and wait", [&](Call call) {
      begun.push_back(file.put_async(1, bytes));
      try {
        begun.back().wait();
        refused.push_back(0);
      } catch (const Error& error) {
        refused.push_back(error.errno_value());
      }
      call.answer();
    });
    if (world.rank() == 0) {
      world.call(0, waits, {}).wait();
      check::is_true(refused == std::vector{EDEADLK} || refused == std::vector{0});
      begun[0].wait();
      check::is_true(file.get(1) == bytes);
    }
    world.barrier();
    file.close();
    world.unregister_procedure(waits);
  });
}

TEST("damage is an error") {
  run(1, false, [](World& world) {
    bool flip = false;
    const auto engine = device::make_fault_engine(
        device::make_thread_engine(1), {.script = [&](std::uint64_t, const device::Operation& operation) {
          return flip && operation.kind == device::Operation::Kind::read ? device::Fault::bit_flip
                                                                         : device::Fault::none;
        }});
    RecordFileOptions with_faults = options(4);
    with_faults.engine = engine.get();
    RecordFile file(world, "damaged", with_faults);
    file.put(0, pattern(100'000));
    flip = true;
    const auto error = check::throws<Error>([&] { (void)file.get(0); });
    check::equal(error.errno_value(), EIO);
    check::contains(error.what(), "damaged");
    file.close();
  });
}

TEST_MAIN
