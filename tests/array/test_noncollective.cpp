// Noncollective access to disk arrays, on one to four processes, against an array in memory.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <complex>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include "array/arrays.hpp"
#include "outcore/disk_array.hpp"
#include "outcore/error.hpp"
#include "outcore/extend/transport.hpp"
#include "support/check.hpp"
#include "support/temporary_directory.hpp"

using namespace outcore;
using outcore::test::for_each_index;
using outcore::test::in_worlds;
using outcore::test::Model;

namespace {

WorldOptions options_in(const TemporaryDirectory& directory, bool distant = false,
                        std::int64_t memory_bytes = 1 << 30) {
  return {.memory_bytes = memory_bytes, .scratch = directory.path(), .node_for_each_process = distant};
}

void for_all_worlds(const std::function<void(World&)>& body) {
  const TemporaryDirectory directory;
  for (const int processes : {1, 2, 3, 4})
    for (const bool distant : {false, true}) in_worlds(processes, options_in(directory, distant), body);
}

int errno_of(const std::function<void()>& body) {
  return check::throws<Error>(body).errno_value();
}

Extents random_step(std::mt19937& random, int rank) {
  Extents step = Extents::filled(rank, 1);
  for (int i = 0; i < rank; ++i)
    if (random() % 3 == 0) step[i] = 1 + static_cast<std::int64_t>(random() % 4);
  if (random() % 16 == 0) step[0] = std::int64_t{1} << 62;  // one element, whatever the array
  return step;
}

/// A section with memory for it; with `reversed` the axes have the reverse order in memory.
struct Part {
  Part(const Box& b, const Extents& s, bool reversed) : box(b), step(s), shape(b.begin) {
    for (int i = 0; i < shape.rank(); ++i) shape[i] = (box.end[i] - box.begin[i] + step[i] - 1) / step[i];
    stride = row_major(shape, sizeof(double));
    if (reversed) {
      std::int64_t each = sizeof(double);
      for (int i = 0; i < shape.rank(); ++i) {
        stride[i] = each;
        each *= shape[i];
      }
    }
    data.resize(static_cast<std::size_t>(shape.product()));
  }
  [[nodiscard]] Slices slices() const { return {box.begin, box.end, step}; }
  [[nodiscard]] Strided memory() { return {reinterpret_cast<std::byte*>(data.data()), stride}; }
  /// Calls with the index in the array and the element in memory.
  void for_each(const std::function<void(const Extents&, double&)>& visit) {
    for_each_index(Box::whole(shape), [&](const Extents& index) {
      Extents place = index;
      std::int64_t at = 0;
      for (int i = 0; i < shape.rank(); ++i) {
        place[i] = box.begin[i] + index[i] * step[i];
        at += index[i] * stride[i] / std::int64_t(sizeof(double));
      }
      visit(place, data[static_cast<std::size_t>(at)]);
    });
  }
  Box box;
  Extents step, shape, stride;
  std::vector<double> data;
};

/// What process `rank` does in a round. All processes compute this for each other, so that all know what the
/// array holds.
struct Deed {
  Part part;
  bool adds;
};

Deed deed_of(unsigned seed, int round, int rank, int processes, const Extents& shape) {
  std::mt19937 random(seed * 1000 + static_cast<unsigned>(round * 10 + rank));
  const bool adds = round % 2 == 1;
  Box box = test::random_box(random, shape);
  if (!adds) {  // what is put must not overlap: each in a slab of its own
    const std::int64_t first = shape[0] * rank / processes, end = shape[0] * (rank + 1) / processes;
    box.begin[0] = std::clamp(box.begin[0], first, end);
    box.end[0] = std::clamp(box.end[0], box.begin[0], end);
  }
  Deed deed{{box, random_step(random, shape.rank()), random() % 2 == 0}, adds};
  for (double& each : deed.part.data) each = static_cast<double>(random() % 1000);
  return deed;
}

void mixed_operations(World& world, unsigned seed, const DiskArrayOptions& given) {
  std::mt19937 random(seed);
  const int rank = 1 + static_cast<int>(random() % 4);
  Extents shape = test::random_shape(random, rank, rank < 3 ? 60 : 10);
  shape[0] += world.size();
  DiskArrayOptions options = given;
  if (random() % 2) options.chunk = test::random_box(random, shape).shape();
  options.caches.cache_bytes = random() % 2 ? 0 : -1;  // as little as can be
  options.caches.client_cache_bytes = random() % 2 ? 0 : 20000;
  DiskArray disk(world, shape, ElementType::float64, options);
  Model model(shape);
  for (int round = 0; round < 6; ++round) {
    Deed mine = deed_of(seed, round, world.rank(), world.size(), shape);
    const double alpha = 2.0;
    Request request = mine.adds ? disk.accumulate_async(mine.part.slices(), mine.part.memory(), &alpha)
                                : disk.put_async(mine.part.slices(), mine.part.memory());
    if (round % 3 == 0)
      disk.sync();
    else
      request.wait();
    for (int process = 0; process < world.size(); ++process) {
      Deed deed = deed_of(seed, round, process, world.size(), shape);
      deed.part.for_each([&](const Extents& index, double& value) {
        double& place = model.data[model.at(index)];
        place = deed.adds ? place + alpha * value : value;
      });
    }
    world.barrier();
    disk.sync();  // copies of chunks that others have changed
    std::mt19937 own(seed + static_cast<unsigned>(round * 10 + world.rank()));
    for (int i = 0; i < 3; ++i) {
      Part got(test::random_box(own, shape), random_step(own, rank), own() % 2 == 0);
      if (i == 0) disk.prefetch(std::span(&got.box, 1));
      disk.get(got.slices(), got.memory());
      got.for_each(
          [&](const Extents& index, double& value) { check::equal(value, model.data[model.at(index)]); });
    }
    world.barrier();
  }
  disk.close();
}

/// Rank 0 works while the others make no call of the library.
void alone(World& world, const std::function<void()>& work) {
  static std::atomic<int> done;  // counts worlds
  const int before = done;
  world.barrier();
  std::exception_ptr failure;
  if (world.rank() == 0) {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    ++done;
  }
  while (done == before) std::this_thread::sleep_for(std::chrono::microseconds(100));
  world.barrier();
  if (failure) std::rethrow_exception(failure);
}

template <class Element>
void every_operation(World& world, ElementType type) {
  const Extents shape{20, 30};
  const Box all = Box::whole(shape);
  DiskArray disk(world, shape, type, {.chunk = {7, 8}});
  std::vector<Element> data(600), back(600);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<Element>(i % 100);
  const auto memory = [&](std::vector<Element>& of) {
    return Strided{reinterpret_cast<std::byte*>(of.data()), row_major(shape, sizeof(Element))};
  };
  if (world.rank() == 0) disk.put(all, memory(data));
  world.barrier();
  disk.get(all, memory(back));
  check::is_true(back == data);
  world.barrier();
  if constexpr (sizeof(Element) >= 4) {
    const Element alpha{3};
    disk.accumulate(all, memory(data), &alpha);
    world.barrier();
    disk.get(all, memory(back));
    for (std::size_t i = 0; i < data.size(); ++i)
      check::is_true(back[i] == data[i] + static_cast<Element>(world.size()) * alpha * data[i]);
    world.barrier();
  } else {
    check::equal(errno_of([&] { disk.accumulate(all, memory(data), nullptr); }), EINVAL);
  }
  disk.close();
}

}  // namespace

TEST("random puts and accumulates by all processes leave what they should") {
  for_all_worlds([](World& world) {
    for (unsigned seed = 0; seed < 10; ++seed) mixed_operations(world, seed, {});
  });
}

TEST("the same with compressed chunks") {
  for_all_worlds([](World& world) {
    for (unsigned seed = 100; seed < 103; ++seed)
      mixed_operations(world, seed, {.codec = store::blosc2_for(sizeof(double))});
  });
}

TEST("no other process has to call anything") {
  for_all_worlds([](World& world) {
    const Extents shape{300, 300};
    const Box all = Box::whole(shape);
    DiskArray disk(world, shape, ElementType::float64, {.chunk = {50, 50}, .group = 1});
    alone(world, [&] {
      Model data(shape), back(shape);
      std::iota(data.data.begin(), data.data.end(), 0.0);
      disk.put_async(all, data.memory(all)).wait();
      Request request = disk.get_async(all, back.memory(all));
      while (!request.test()) std::this_thread::yield();
      check::is_true(back.data == data.data);
    });
    disk.close();
  });
}

TEST("elements of all types are moved, and added up where they can be") {
  for_all_worlds([](World& world) {
    every_operation<std::int8_t>(world, ElementType::int8);
    every_operation<std::int16_t>(world, ElementType::int16);
    every_operation<std::int32_t>(world, ElementType::int32);
    every_operation<std::int64_t>(world, ElementType::int64);
    every_operation<std::uint8_t>(world, ElementType::uint8);
    every_operation<float>(world, ElementType::float32);
    every_operation<double>(world, ElementType::float64);
    every_operation<std::complex<float>>(world, ElementType::complex64);
    every_operation<std::complex<double>>(world, ElementType::complex128);
  });
}

TEST("accumulates of all processes into the same elements add up exactly") {
  for_all_worlds([](World& world) {
    const Extents shape{40, 40};
    DiskArray disk(world, shape, ElementType::int64,
                   {.chunk = {16, 16}, .group = 1, .caches = {.cache_bytes = 0}});
    std::mt19937 random(static_cast<unsigned>(world.rank()));
    const std::vector<std::int64_t> ones(1600, 1);
    const auto memory = [&](const Box& box) {
      return Strided{reinterpret_cast<std::byte*>(const_cast<std::int64_t*>(ones.data())),
                     row_major(box.shape(), sizeof(std::int64_t))};
    };
    std::int64_t added = 0;
    std::vector<Request> requests;
    for (int i = 0; i < 60; ++i) {
      const Box box = test::random_box(random, shape);
      requests.push_back(disk.accumulate_async(box, memory(box), nullptr));
      added += box.volume();
    }
    for (Request& each : requests) each.wait();
    world.transport().all_reduce(std::span(&added, 1), transport::Reduction::sum);
    std::vector<std::int64_t> sum(1600);
    const Box all = Box::whole(shape);
    disk.get(all, {reinterpret_cast<std::byte*>(sum.data()), row_major(shape, sizeof(std::int64_t))});
    check::equal(std::accumulate(sum.begin(), sum.end(), std::int64_t{0}), added);
    world.barrier();
    disk.close();
  });
}

TEST("boxes larger than what is asked for at once pass in portions, also under a small budget") {
  const TemporaryDirectory directory;
  for (const bool small : {false, true})
    in_worlds(2, options_in(directory, true, small ? 24 << 20 : 1 << 30), [](World& world) {
      const Extents shape{1500, 1501};
      DiskArray disk(world, shape, ElementType::float64);
      Model model(shape), back(shape);
      std::iota(model.data.begin(), model.data.end(), 0.0);
      Box mine = Box::whole(shape);
      (world.rank() == 0 ? mine.end : mine.begin)[1] = 700;
      disk.put(mine, model.memory(mine));
      world.barrier();
      const Box all = Box::whole(shape);
      disk.get_async(all, back.memory(all)).wait();
      check::is_true(back.data == model.data);
      world.barrier();
      disk.close();
    });
}

TEST("collective transfers see what was put, and gets see what they wrote") {
  for_all_worlds([](World& world) {
    const Extents shape{60, 50};
    const Box all = Box::whole(shape), part{{10, 10}, {30, 45}};
    DiskArray disk(world, shape, ElementType::float64, {.chunk = {16, 16}});
    Model model(shape), back(shape);
    std::iota(model.data.begin(), model.data.end(), 1.0);
    if (world.rank() == world.size() - 1) disk.put(all, model.memory(all));
    world.barrier();
    disk.read_all_async(back.memory(all), all).wait();
    check::is_true(back.data == model.data);
    for (double& each : back.data) each = -each;
    disk.write_all_async(back.memory(part), part).wait();
    for_each_index(part, [&](const Extents& index) { model.data[model.at(index)] *= -1; });
    disk.get(all, back.memory(all));
    check::is_true(back.data == model.data);
    world.barrier();
    if (world.rank() == 0) disk.accumulate(all, model.memory(all), nullptr);
    world.barrier();
    GlobalArray array(world, shape, ElementType::float64);
    disk.read_all_async(array, {.box = all}, all).wait();
    array.get(all, back.memory(all));
    for (double& each : model.data) each *= 2;
    check::is_true(back.data == model.data);
    disk.close();
  });
}

TEST("what one process has put is committed by close, and found by any number of processes") {
  for (const int writers : {1, 2, 4})
    for (const int readers : {1, 3}) {
      const TemporaryDirectory directory;
      const std::string path = directory.path() + "/array";
      const Extents shape{50, 40};
      const Box all = Box::whole(shape);
      Model model(shape);
      std::iota(model.data.begin(), model.data.end(), 0.0);
      in_worlds(writers, options_in(directory), [&](World& world) {
        DiskArray(world, shape, ElementType::float64, {.path = path, .chunk = {7, 9}}).close();
        DiskArray disk = DiskArray::open(world, path, false);
        Model data = model;
        if (world.rank() == 0) (void)disk.put_async(all, data.memory(all));  // close waits for it
        disk.close();
      });
      in_worlds(readers, options_in(directory), [&](World& world) {
        DiskArray disk = DiskArray::open(world, path);
        Model back(shape);
        disk.get(all, back.memory(all));
        check::is_true(back.data == model.data);
        check::equal(errno_of([&] { disk.put(all, back.memory(all)); }), EROFS);
        world.barrier();
        disk.close();
      });
    }
}

TEST("parts of an array on local disks are reached at their nodes") {
  const TemporaryDirectory directory;
  const Extents shape{50, 40};
  const Box all = Box::whole(shape);
  const std::string path = directory.path() + "/disk{node}";
  Model model(shape);
  std::iota(model.data.begin(), model.data.end(), 0.0);
  in_worlds(3, options_in(directory, true), [&](World& world) {
    DiskArray disk(world, shape, ElementType::float64, {.path = path, .chunk = {7, 9}, .group = 2});
    Model data = model;
    if (world.rank() == 1) disk.put(all, data.memory(all));
    disk.close();
  });
  in_worlds(4, options_in(directory, true), [&](World& world) {
    DiskArray disk = DiskArray::open(world, path);
    Model back(shape);
    disk.get(all, back.memory(all));
    check::is_true(back.data == model.data);
    world.barrier();
    disk.close();
  });
}

TEST("arguments that do not fit are refused, and nothing else happens") {
  for_all_worlds([](World& world) {
    DiskArray disk(world, {10, 10}, ElementType::float64);
    Model model({20, 20});
    const Strided memory = model.memory({{0, 0}, {5, 5}});
    for (const Box& box : {Box{{0, 0}, {5, 11}}, Box{{-1, 0}, {5, 5}}, Box{{5, 0}, {4, 5}}, Box{{0}, {5}},
                           Box{{0, 0, 0}, {5, 5, 5}}, Box{{0, 0}, {5}}}) {
      check::contains(check::throws<Error>([&] { disk.get(box, memory); }).what(), "disk array [10, 10]");
      check::equal(errno_of([&] { (void)disk.put_async(box, memory); }), EINVAL);
      check::equal(errno_of([&] { disk.prefetch(std::span(&box, 1)); }), EINVAL);
    }
    const Box good{{0, 0}, {5, 5}};
    check::equal(errno_of([&] { disk.get(Slices(good.begin, good.end, {1, 0}), memory); }), EINVAL);
    check::equal(errno_of([&] { disk.get(Slices(good.begin, good.end, {1}), memory); }), EINVAL);
    check::equal(errno_of([&] { disk.get(good, {memory.data, {8}}); }), EINVAL);
    disk.get({{3, 3}, {3, 3}}, memory);  // nothing
    disk.close();
    check::equal(errno_of([&] { disk.get(good, memory); }), EBADF);
    check::equal(errno_of([&] { disk.sync(); }), EBADF);
  });
}

TEST("copies of chunks of others are kept until sync, and until this process changes them") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory, true), [](World& world) {
    const Extents shape{40, 40};
    const Box all = Box::whole(shape), theirs{{0, 0}, {16, 40}};
    DiskArray disk(world, shape, ElementType::float64,
                   {.chunk = {16, 16}, .group = 100, .caches = {.client_cache_bytes = 1 << 20}});
    Model model(shape), back(shape);
    std::iota(model.data.begin(), model.data.end(), 0.0);
    const auto read = [&](const Box& box) {
      std::ranges::fill(back.data, -1);
      disk.get(box, back.memory(box));
    };
    if (world.rank() == 0) disk.put(all, model.memory(all));  // all chunks are of process 0
    world.barrier();
    if (world.rank() == 1) {
      read(all);
      check::is_true(back.data == model.data);
    }
    world.barrier();
    for (double& each : model.data) each *= 2;
    if (world.rank() == 0) disk.put(theirs, model.memory(theirs));
    world.barrier();
    if (world.rank() == 1) {
      read(theirs);
      check::equal(back.data[1], 1.0);  // the copy
      disk.sync();
      read(theirs);
      check::equal(back.data[1], 2.0);
      const Box one{{0, 1}, {1, 2}};
      Model mine(shape);
      mine.data[1] = 7;
      disk.put(one, mine.memory(one));
      read(theirs);
      check::equal(back.data[1], 7.0);
      check::equal(back.data[2], 4.0);
    }
    world.barrier();
    Model zeros(shape);
    disk.write_all_async(zeros.memory(all), all).wait();
    read(all);
    check::is_true(back.data == zeros.data);
    world.barrier();
    disk.close();
  });
}

TEST("a copy that was on its way while all wrote is not kept") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory, true), [](World& world) {
    const Extents shape{64, 64};
    const Box all = Box::whole(shape);
    DiskArray disk(world, shape, ElementType::float64,
                   {.chunk = {16, 16}, .group = 100, .caches = {.client_cache_bytes = 1 << 20}});
    GlobalArray source(world, shape, ElementType::float64);
    Model model(shape), back(shape);
    for (int round = 1; round <= 60; ++round) {
      std::ranges::fill(model.data, round);
      if (world.rank() == 0) source.put(all, model.memory(all));
      world.barrier();
      auto early = disk.get_async(all, back.memory(all));  // all chunks are of process 0
      disk.write_all_async(source, {.box = all}, all).wait();
      early.wait();
      disk.get(all, back.memory(all));
      check::is_true(back.data == model.data, "old elements after a write");
      world.barrier();
    }
    disk.close();
  });
}

TEST("a get whose copies find no memory fails or succeeds, and ends") {
  const TemporaryDirectory directory;
  in_worlds(2, {.memory_bytes = 64 << 20, .scratch = directory.path(), .node_for_each_process = true},
            [](World& world) {
              const Extents shape{256, 256};
              DiskArray disk(world, shape, ElementType::float64,
                             {.chunk = {64, 64}, .group = 100, .caches = {0, 1 << 20}});
              Model model(shape);
              const Box part{{0, 0}, {256, 200}};  // not together in memory
              if (world.rank() == 0) disk.put(part, model.memory(part));
              world.barrier();
              if (world.rank() == 1) {
                Budget& budget = world.budget();
                const std::int64_t rest = budget.limit_bytes() - budget.used_bytes();
                budget.reserve(rest, "all that is left");
                check::equal(errno_of([&] { disk.get(part, model.memory(part)); }), ENOMEM);
                budget.release(rest);
                disk.get(part, model.memory(part));
              }
              world.barrier();
              disk.close();
            });
}

TEST("many threads of a process use an array at once") {
  const TemporaryDirectory directory;
  in_worlds(2, options_in(directory, true), [](World& world) {
    const Extents shape{64, 64};
    DiskArray disk(world, shape, ElementType::float64, {.chunk = {16, 16}, .group = 1});
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        Model model(shape);
        const Box row{{t * 2 + world.rank(), 0}, {t * 2 + world.rank() + 1, 64}};
        for (int i = 1; i <= 30; ++i) {
          std::ranges::fill(model.data, i);
          disk.put(row, model.memory(row));
          std::ranges::fill(model.data, 0);
          disk.get(row, model.memory(row));
          for_each_index(row, [&](const Extents& index) { check::equal(model.data[model.at(index)], i); });
        }
      });
    for (std::thread& each : threads) each.join();
    world.barrier();
    disk.close();
  });
}

TEST_MAIN
