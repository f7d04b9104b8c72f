// Packed records of several processes: sums and bounds hold wherever records lie, space is used again, and
// damage is an error.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "device/fault.hpp"
#include "file/record_store.hpp"
#include "file/shared_support.hpp"

namespace {

using namespace outcore;
using file::RecordStore;
using file::RecordStoreOptions;
using Indices = std::vector<std::int64_t>;
using Numbers = std::vector<double>;

std::int64_t total(const Indices& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

Indices every(const Indices& sizes) {
  Indices found(sizes.size());
  std::iota(found.begin(), found.end(), 0);
  return found;
}

Indices random_sizes(std::size_t count, std::int64_t most) {
  std::mt19937_64 random(3);
  Indices sizes(count);
  for (auto& each : sizes) each = 1 + std::int64_t(random() % std::uint64_t(most));
  return sizes;
}

Numbers read(RecordStore& store, std::int64_t record, std::int64_t size) {
  Numbers numbers(std::size_t(size), -1.0);
  store.get(Indices{record}, numbers);
  return numbers;
}

int in_memory(RecordStore& store, std::int64_t records) {
  int count = 0;
  for (std::int64_t i = 0; i < records; ++i) count += store.place(i).in_memory ? 1 : 0;
  return count;
}

}  // namespace

TEST("each process's records are as a model has them, in memory, in the file and in both") {
  for (const std::int64_t memory_bytes : {std::int64_t{256}, std::int64_t{8192}, std::int64_t{1} << 20})
    for (const double error : {0.0, 1e-9})
      shared::run_all([&](World& world) {
        const Indices sizes = random_sizes(40, 300);
        RecordStore store(world, "model", {.sizes = sizes, .memory_bytes = memory_bytes});
        std::mt19937_64 random(unsigned(world.rank()));
        std::vector<Numbers> model;
        for (const auto each : sizes) model.emplace_back(each);
        for (int turn = 0; turn < 60; ++turn) {
          // Records rank, rank + size, ... are this process's.
          const auto mine = std::uint64_t((40 - world.rank() + world.size() - 1) / world.size());
          const auto record =
              std::size_t(world.rank()) + std::size_t(random() % mine) * std::size_t(world.size());
          Numbers numbers(static_cast<std::size_t>(sizes[record]));
          const double scale = std::pow(10.0, double(random() % 10) - 8);
          for (double& each : numbers) each = scale * (double(random() % 2000) - 1000) / 1000;
          const Indices which{std::int64_t(record)};
          switch (random() % 4) {
            case 0:
              store.erase(which);
              std::fill(model[record].begin(), model[record].end(), 0.0);
              break;
            case 1:
              store.add(which, error, numbers);
              for (std::size_t i = 0; i < numbers.size(); ++i) model[record][i] += numbers[i];
              break;
            default:
              store.put(which, error, numbers, random() % 2 == 0);
              model[record] = numbers;
          }
        }
        world.barrier();
        if (world.rank() == 0) {
          Numbers all(std::size_t(total(sizes)), -1.0);
          store.get(every(sizes), all);
        }
        for (std::size_t record = std::size_t(world.rank()); record < 40;
             record += std::size_t(world.size())) {
          const auto found = read(store, std::int64_t(record), sizes[record]);
          for (std::size_t i = 0; i < found.size(); ++i)
            check::is_true(std::abs(found[i] - model[record][i]) <= 60 * error + 1e-12);
        }
        store.close();
      });
}

TEST("additions of all threads of all processes are there, and all see them") {
  shared::run_all([](World& world) {
    const Indices sizes(20, 100);
    RecordStore store(world, "sums", {.sizes = sizes, .memory_bytes = 4096});
    const Numbers ones(2000, 1.0);
    const auto work = [&] {
      for (int i = 0; i < 10; ++i) store.add(every(sizes), 0, ones);
    };
    std::thread other(work);
    work();
    other.join();
    world.barrier();
    Numbers found(2000);
    store.get(every(sizes), found);
    for (const double each : found) check::equal(each, 20.0 * world.size());
    const int there = in_memory(store, 20);
    check::is_true(there > 0 && there < 20);
    store.close();
  });
}

TEST("space of records that grow, shrink and go is used again") {
  shared::run(1, false, [](World& world) {
    constexpr std::int64_t records = 16, size = 200;
    RecordStore store(world, "again", {.sizes = Indices(records, size), .memory_bytes = 40'000});
    std::mt19937_64 random(1);
    for (int turn = 0; turn < 3000; ++turn) {
      const Indices which{std::int64_t(random() % records)};
      if (random() % 4 == 0) {
        store.erase(which);
      } else {  // of any length up to 1635 bytes: 16 of them are always less than there are
        const double scale = std::pow(10.0, -double(random() % 9));
        Numbers numbers(size);
        for (double& each : numbers) each = scale * double(random() % 1000);
        store.put(which, random() % 2 == 0 ? 1e-8 : 0.0, numbers, false);
      }
    }
    check::equal(store.counts().file_writes.count, 0);
    store.close();
  });
}

TEST("a record goes into memory when there is room again") {
  shared::run(1, false, [](World& world) {
    RecordStore store(world, "room", {.sizes = Indices(2, 100), .memory_bytes = 1024});
    const Numbers numbers(100, 0.5);
    store.put(Indices{0, 1}, 0, Numbers(200, 0.5), false);
    check::is_true(store.place(0).in_memory && !store.place(1).in_memory);
    store.erase(Indices{0});
    check::equal(store.place(0).bytes, 0);
    store.put(Indices{1}, 0, numbers, false);
    check::is_true(store.place(1).in_memory);
    check::is_true(read(store, 1, 100) == numbers && read(store, 0, 100) == Numbers(100, 0.0));
    store.close();
  });
}

TEST("idle records leave memory to others") {
  shared::run(1, false, [](World& world) {
    RecordStore store(world, "idle",
                      {.sizes = Indices(40, 100), .memory_bytes = 20'000, .reserve_bytes = 15'000});
    const Numbers numbers(100, 1.0);
    for (std::int64_t i = 0; i < 20; ++i) store.put(Indices{i}, 0, numbers, true);
    const int idle = in_memory(store, 40);
    for (std::int64_t i = 20; i < 40; ++i) store.add(Indices{i}, 0, numbers);
    check::is_true(0 < idle && idle < in_memory(store, 40) - idle);
    store.close();
  });
}

TEST("what was moved is counted with its sizes") {
  shared::run(1, false, [](World& world) {
    RecordStore store(world, "counts", {.sizes = {10, 200}, .memory_bytes = 4096, .reserve_bytes = 1 << 20});
    store.put(Indices{0}, 0, Numbers(10, 1.0), false);
    store.put(Indices{1}, 0, Numbers(200, 1.0), true);
    (void)read(store, 1, 200);
    const auto counts = store.counts();
    const std::int64_t small = store.place(0).bytes, large = store.place(1).bytes;
    check::is_true(small > 80 && large > 1600);
    check::equal(counts.writes.count, 2);
    check::equal(counts.writes.bytes, small + large);
    check::equal(counts.writes.least, small);
    check::equal(counts.writes.most, large);
    check::equal(counts.file_writes.bytes, large);
    check::equal(counts.reads.bytes, large);
    check::equal(counts.file_reads.count, 1);
    store.close();
  });
}

TEST("a record that comes back damaged is an error") {
  shared::run(1, false, [](World& world) {
    bool flip = false;
    const auto engine = device::make_fault_engine(
        device::make_thread_engine(1), {.script = [&](std::uint64_t, const device::Operation& operation) {
          return flip && operation.kind == device::Operation::Kind::read ? device::Fault::bit_flip
                                                                         : device::Fault::none;
        }});
    RecordStore store(world, "damaged", {.sizes = {20'000}, .memory_bytes = 64, .engine = engine.get()});
    store.put(Indices{0}, 0, Numbers(20'000, 0.25), false);
    flip = true;
    const auto error = check::throws<Error>([&] { (void)read(store, 0, 20'000); });
    check::equal(error.errno_value(), EIO);
    check::contains(error.what(), "damaged");
    flip = false;
    check::is_true(read(store, 0, 20'000) == Numbers(20'000, 0.25));
    store.close();
  });
}

TEST("options that are not possible are refused at all processes") {
  shared::run_all([](World& world) {
    const auto refused = [&](RecordStoreOptions options, const char* why) {
      if (world.rank() != world.size() - 1) options = {.sizes = {1}};
      const auto error = check::throws<Error>([&] { const RecordStore store(world, "refused", options); });
      check::equal(error.errno_value(), EINVAL);
      check::contains(error.what(), why);
    };
    refused({}, "0 records");
    refused({.sizes = {5, -1}}, "a record of -1 numbers");
    refused({.sizes = {std::int64_t{1} << 40}}, "numbers");
    refused({.sizes = {1}, .memory_bytes = -8}, "memory of -8 bytes");
    if (world.size() > 1) refused({.sizes = {2}}, "");
  });
}

TEST("numbers that do not fit the records, records that are not there, and a closed store are refused") {
  shared::run(1, false, [](World& world) {
    RecordStore store(world, "wrong", {.sizes = {3, 4}});
    check::throws<std::invalid_argument>([&] { store.put(Indices{0, 1}, 0, Numbers(6), false); });
    check::throws<std::out_of_range>([&] { (void)store.place(2); });
    check::throws<std::out_of_range>([&] { store.erase(Indices{-1}); });
    store.close();
    store.close();
    const auto error = check::throws<Error>([&] { (void)read(store, 0, 3); });
    check::equal(error.errno_value(), EBADF);
  });
}

TEST("the memory of a closed store is given back") {
  shared::run_all([](World& world) {
    const auto before = world.budget().used_bytes();
    RecordStore store(world, "memory", {.sizes = {3, 4}, .memory_bytes = 1 << 20});
    check::is_true(world.budget().used_bytes() >= before + (1 << 20));
    store.close();
    check::is_true(world.budget().used_bytes() < before + (1 << 20));
  });
}

TEST_MAIN
