// Global arrays in worlds of 1 to 4 threads, whose patches can be loaded and stored, or not.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <complex>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "array/support.hpp"
#include "outcore/extend/transport.hpp"

using namespace arrays;

namespace {

const Extents shape{13, 7, 5};

/// One distribution of each kind.
std::vector<Distribution> distributions(int processes) {
  std::vector<std::vector<std::int64_t>> begins(3, {0});
  for (int i = 1; i < processes; ++i) begins[0].push_back(i + 1);
  return {Distribution::regular(shape, processes), Distribution::irregular(shape, processes, begins),
          Distribution::block_cyclic(shape, processes, {2, 3, 2})};
}

void for_each_distribution(const std::function<void(World&, const Distribution&)>& body) {
  run_all([&](World& world) {
    for (const Distribution& distribution : distributions(world.size())) body(world, distribution);
  });
}

Box random_box(std::mt19937& random) {
  Box box = Box::whole(shape);
  for (int i = 0; i < shape.rank(); ++i) {
    const auto limit = static_cast<unsigned>(shape[i]) + 1;
    box.begin[i] = random() % limit;
    box.end[i] = box.begin[i] + random() % (limit - static_cast<unsigned>(box.begin[i]));
  }
  return box;
}

/// Checks that the error is the same at all processes; returns its message.
std::string same_error(World& world, int errno_value, const std::function<void()>& body) {
  const Error error = check::throws<Error>(body);
  check::equal(error.errno_value(), errno_value);
  const std::string text = error.what();
  const auto mine =
      static_cast<std::int64_t>(fingerprint(std::as_bytes(std::span(text.data(), text.size()))) >> 1);
  std::array<std::int64_t, 2> least_and_most{mine, -mine};
  world.transport().all_reduce(least_and_most, transport::Reduction::min);
  check::equal(least_and_most[0], -least_and_most[1]);
  return text;
}

}  // namespace

TEST("an array is zero at first") {
  for_each_distribution([](World& world, const Distribution& distribution) {
    GlobalArray array(world, ElementType::float64, distribution);
    std::vector<double> values(static_cast<std::size_t>(shape.product()), 1.0);
    array.get(Box::whole(shape), row_major_memory(values, shape));
    check::is_true(std::ranges::all_of(values, [](double value) { return value == 0; }));
    array.sync();
  });
}

TEST("a get finds what each process wrote into its own patch") {
  for_each_distribution([](World& world, const Distribution& distribution) {
    GlobalArray array(world, ElementType::float64, distribution);
    fill_with_positions<double>(array);
    std::mt19937 random(7);
    for (int round = 0; round < 20; ++round) {
      const Box box = random_box(random);
      std::vector<double> values(static_cast<std::size_t>(box.volume()));
      array.get(box, row_major_memory(values, box.shape()));
      check::is_true(values == positions<double>(shape, box));
    }
    array.sync();
  });
}

TEST("a put reaches the patches of all processes, and no element besides the box") {
  for_each_distribution([](World& world, const Distribution& distribution) {
    GlobalArray array(world, ElementType::int32, distribution);
    const Box box{{2, 1, 1}, {11, 6, 4}};
    if (world.rank() == world.size() - 1) {
      auto values = positions<std::int32_t>(shape, box);
      array.put(box, row_major_memory(values, box.shape()));
    }
    array.sync();
    std::vector<std::int32_t> all(static_cast<std::size_t>(shape.product()));
    array.get(Box::whole(shape), row_major_memory(all, shape));
    for (std::int64_t k = 0; k < shape.product(); ++k) {
      const Extents index = index_of(Box::whole(shape), k);
      Box one{index, index};
      for (int i = 0; i < 3; ++i) ++one.end[i];
      check::equal(all[static_cast<std::size_t>(k)], box.contains(one) ? k : 0);
    }
    array.sync();
  });
}

TEST("strides of the memory transpose a get") {
  for_each_distribution([](World& world, const Distribution& distribution) {
    GlobalArray array(world, ElementType::complex64, distribution);
    fill_with_positions<std::complex<float>>(array);
    std::vector<std::complex<float>> values(static_cast<std::size_t>(shape.product()));
    const Extents turned = row_major({shape[2], shape[0], shape[1]}, 8);
    array.get(Box::whole(shape),
              {reinterpret_cast<std::byte*>(values.data()), {turned[1], turned[2], turned[0]}});
    for (std::int64_t k = 0; k < shape.product(); ++k) {
      const Extents at = index_of(Box::whole(shape), k);
      const auto found = values[static_cast<std::size_t>((at[2] * shape[0] + at[0]) * shape[1] + at[1])];
      check::equal(found.real(), static_cast<float>(k));
    }
    array.sync();
  });
}

TEST("steps take every so-manieth element, and put them back") {
  for_each_distribution([](World& world, const Distribution& distribution) {
    GlobalArray array(world, ElementType::int64, distribution);
    fill_with_positions<std::int64_t>(array);
    const Slices slices({1, 0, 0}, {13, 7, 4}, {5, 2, 3});
    const Extents count{3, 4, 2};
    std::vector<std::int64_t> values(24), expected;
    array.get_async(slices, row_major_memory(values, count)).wait();
    for (int k = 0; k < 24; ++k) {
      const Extents at = index_of(Box::whole(count), k);
      expected.push_back(position(shape, {1 + 5 * at[0], 2 * at[1], 3 * at[2]}));
    }
    check::is_true(values == expected);
    array.sync();
    if (world.rank() == 0) {
      for (std::int64_t& value : values) value = -value - 1;
      array.put_async(slices, row_major_memory(values, count)).wait();
    }
    array.sync();
    std::vector<std::int64_t> all(static_cast<std::size_t>(shape.product())), again = all;
    array.get(Box::whole(shape), row_major_memory(all, shape));
    std::iota(again.begin(), again.end(), 0);
    for (const std::int64_t at : expected) again[static_cast<std::size_t>(at)] = -at - 1;
    check::is_true(all == again);
    array.sync();
  });
}

TEST("accumulates of all processes add up") {
  for_each_distribution([](World& world, const Distribution& distribution) {
    GlobalArray array(world, ElementType::float64, distribution);
    const Box box{{1, 0, 1}, {12, 7, 5}};
    auto values = positions<double>(shape, box);
    const double alpha = 0.5;
    for (int round = 0; round < 10; ++round)
      array.accumulate(box, row_major_memory(values, box.shape()), &alpha);
    array.sync();
    std::vector<double> sum(values.size());
    array.get(box, row_major_memory(sum, box.shape()));
    for (std::size_t k = 0; k < sum.size(); ++k) check::equal(sum[k], 5.0 * world.size() * values[k]);
    array.sync();
  });
}

TEST("every type that can be accumulated is, alpha being one if not given") {
  run(3, true, [](World& world) {
    for (const ElementType type : {ElementType::int32, ElementType::int64, ElementType::float32,
                                   ElementType::float64, ElementType::complex64, ElementType::complex128}) {
      visit(type, [&](auto zero) {
        using Element = decltype(zero);
        GlobalArray array(world, {9}, type);
        std::vector<Element> ones(9, Element{1}), sum(9);
        array.accumulate(Box::whole({9}), row_major_memory(ones, {9}), nullptr);
        array.sync();
        array.get(Box::whole({9}), row_major_memory(sum, {9}));
        check::is_true(sum == std::vector<Element>(9, Element{3}));
        array.sync();
      });
    }
  });
}

TEST("several threads of a process accumulate at once") {
  run(2, false, [](World& world) {
    GlobalArray array(world, {40, 40}, ElementType::float64);
    const auto add = [&] {
      std::vector<double> ones(1600, 1.0);
      for (int round = 0; round < 25; ++round)
        array.accumulate(Box::whole({40, 40}), row_major_memory(ones, {40, 40}), nullptr);
    };
    std::thread other(add);
    add();
    other.join();
    array.sync();
    std::vector<double> sum(1600);
    array.get(Box::whole({40, 40}), row_major_memory(sum, {40, 40}));
    check::is_true(sum == std::vector<double>(1600, 100.0));
    array.sync();
  });
}

TEST("many nonblocking transfers are under way at once") {
  for_each_distribution([](World& world, const Distribution& distribution) {
    GlobalArray array(world, ElementType::float64, distribution);
    fill_with_positions<double>(array);
    std::mt19937 random(static_cast<unsigned>(world.rank()));
    std::vector<Box> boxes;
    std::vector<std::vector<double>> memory;
    std::vector<Request> requests;
    for (int k = 0; k < 50; ++k) {
      boxes.push_back(random_box(random));
      memory.emplace_back(static_cast<std::size_t>(boxes.back().volume()));
      requests.push_back(
          array.get_async(boxes.back(), row_major_memory(memory.back(), boxes.back().shape())));
    }
    for (std::size_t k = 0; k < requests.size(); ++k) {
      if (k % 2)
        requests[k].wait();
      else
        while (!requests[k].test()) std::this_thread::yield();
      check::is_true(memory[k] == positions<double>(shape, boxes[k]));
    }
    array.sync();
  });
}

TEST("gather and scatter move single elements") {
  for_each_distribution([](World& world, const Distribution& distribution) {
    GlobalArray array(world, ElementType::int32, distribution);
    std::vector<std::int64_t> indices;
    std::vector<std::int32_t> values;
    std::set<std::int64_t> chosen;
    std::mt19937 random(3);
    while (chosen.size() < 60) chosen.insert(random() % static_cast<unsigned>(shape.product()));
    for (const std::int64_t k : chosen) {
      const Extents index = index_of(Box::whole(shape), k);
      indices.insert(indices.end(), index.values().begin(), index.values().end());
      values.push_back(static_cast<std::int32_t>(k + 1));
    }
    const auto bytes = std::as_writable_bytes(std::span(values));
    if (world.rank() == 0) array.scatter(indices, bytes.data());
    array.sync();
    array.scatter_accumulate(indices, bytes.data(), nullptr);
    array.sync();
    std::vector<std::int32_t> found(values.size());
    array.gather(indices, std::as_writable_bytes(std::span(found)).data());
    for (std::size_t k = 0; k < values.size(); ++k) check::equal(found[k], (world.size() + 1) * values[k]);
    std::vector<std::int32_t> all(static_cast<std::size_t>(shape.product()));
    array.get(Box::whole(shape), row_major_memory(all, shape));
    for (std::int64_t k = 0; k < shape.product(); ++k)
      check::is_true(chosen.contains(k) || all[static_cast<std::size_t>(k)] == 0);
    array.sync();
  });
}

TEST("read-increments hand out each number once") {
  for_each_distribution([](World& world, const Distribution& distribution) {
    GlobalArray array(world, ElementType::int64, distribution);
    GlobalArray taken(world, {100}, ElementType::int32);
    for (int round = 0; round < 100 / world.size(); ++round) {
      const std::int64_t number = array.read_increment({12, 6, 4}, 1);
      std::int32_t one = 1;
      taken.accumulate({{number}, {number + 1}}, {reinterpret_cast<std::byte*>(&one), {4}}, nullptr);
    }
    array.sync();
    const std::int64_t count = 100 / world.size() * world.size();
    std::vector<std::int32_t> all(static_cast<std::size_t>(count));
    taken.get({{0}, {count}}, row_major_memory(all, {count}));
    check::is_true(all == std::vector<std::int32_t>(all.size(), 1));
    check::equal(array.read_increment({12, 6, 4}, 0), count);
    array.sync();
  });
}

TEST("an array smaller than the world, and one without elements") {
  run_all([](World& world) {
    GlobalArray one(world, {1, 1}, ElementType::float64), none(world, {0, 4}, ElementType::float64);
    double value = 3;
    if (world.rank() == world.size() - 1)
      one.put({{0, 0}, {1, 1}}, {reinterpret_cast<std::byte*>(&value), {8, 8}});
    one.sync();
    value = 0;
    one.get({{0, 0}, {1, 1}}, {reinterpret_cast<std::byte*>(&value), {8, 8}});
    check::equal(value, 3.0);
    none.get({{0, 0}, {0, 4}}, {nullptr, {32, 8}});
    check::equal(none.distribution().local_shape(world.rank()).product(), 0);
    one.sync();
  });
}

TEST("memory goes back to the world, and is zero for the next") {
  run(2, false, [](World& world) {
    for (int round = 0; round < 20; ++round) {  // together ten times the budget
      GlobalArray array(world, {budget_bytes / 8}, ElementType::float64);
      const Strided local = array.local();
      check::equal(*reinterpret_cast<double*>(local.data), 0.0);
      *reinterpret_cast<double*>(local.data) = 1;
      array.close();
    }
  });
}

TEST("boxes outside of the array are refused") {
  run(2, false, [](World& world) {
    GlobalArray array(world, {4, 5}, ElementType::float64);
    std::vector<double> memory(100);
    const Strided there = row_major_memory(memory, {4, 5});
    for (const Box& box : {Box{{0, 0}, {5, 5}}, Box{{-1, 0}, {2, 2}}, Box{{3, 3}, {2, 4}}, Box{{0}, {4}}}) {
      const Error error = check::throws<Error>([&] { array.get(box, there); });
      check::equal(error.errno_value(), EINVAL);
      check::contains(error.what(), box.text());
      check::contains(error.what(), "[4, 5]");
      (void)check::throws<Error>([&] { array.put(box, there); });
      (void)check::throws<Error>([&] { array.accumulate(box, there, nullptr); });
    }
  });
}

TEST("memory of another rank and steps that are not positive are refused") {
  run(1, false, [](World& world) {
    GlobalArray array(world, {4, 5}, ElementType::float64);
    std::vector<double> memory(20);
    check::contains(
        check::throws<Error>([&] { array.get(Box::whole({4, 5}), row_major_memory(memory, {20})); }).what(),
        "1 dimensions");
    check::contains(check::throws<Error>([&] {
                      (void)array.get_async(Slices({0, 0}, {4, 5}, {1, 0}), row_major_memory(memory, {4, 5}));
                    }).what(),
                    "steps [1, 0]");
  });
}

TEST("an index outside is refused before any element is moved") {
  run(2, true, [](World& world) {
    GlobalArray array(world, {4, 5}, ElementType::int64);
    const std::int64_t indices[] = {0, 0, 4, 0};
    std::int64_t values[] = {1, 1};
    const auto bytes = std::as_writable_bytes(std::span(values));
    check::contains(check::throws<Error>([&] { array.scatter(indices, bytes.data()); }).what(), "[4, 0]");
    array.sync();
    array.gather(std::span(indices, 2), bytes.data());
    check::equal(values[0], 0);
    (void)check::throws<Error>([&] { (void)array.read_increment({0, 5}, 1); });
    (void)check::throws<Error>([&] { array.gather(std::span(indices, 3), bytes.data()); });
  });
}

TEST("small integers cannot be accumulated, and only int64 be incremented") {
  run(1, false, [](World& world) {
    GlobalArray array(world, {4}, ElementType::int16);
    std::int16_t values[4] = {};
    const Strided there{reinterpret_cast<std::byte*>(values), {2}};
    check::contains(check::throws<Error>([&] { array.accumulate(Box::whole({4}), there, nullptr); }).what(),
                    "int16");
    check::contains(check::throws<Error>([&] { (void)array.read_increment({0}, 1); }).what(), "int64");
  });
}

TEST("a closed array says so") {
  run(2, false, [](World& world) {
    GlobalArray array(world, {4}, ElementType::float64);
    array.close();
    array.close();
    check::is_true(array.closed());
    double values[4];
    const Strided there{reinterpret_cast<std::byte*>(values), {8}};
    check::equal(check::throws<Error>([&] { array.get(Box::whole({4}), there); }).errno_value(), EBADF);
    check::equal(check::throws<Error>([&] { (void)array.local(); }).errno_value(), EBADF);
    check::equal(check::throws<Error>([&] { array.sync(); }).errno_value(), EBADF);
  });
}

TEST("more than the budget is refused at all processes, with the numbers") {
  run(3, false, [](World& world) {
    const auto text =
        same_error(world, ENOMEM, [&] { GlobalArray array(world, {1 << 30}, ElementType::float64); });
    check::contains(text, "[1073741824]");
    GlobalArray array(world, {100}, ElementType::float64);  // the world is as before
    array.sync();
  });
}

TEST("different shapes at different processes are refused at all") {
  run(3, false, [](World& world) {
    (void)same_error(world, EINVAL,
                     [&] { GlobalArray array(world, {10 + world.rank() / 2}, ElementType::float64); });
    (void)same_error(world, EINVAL, [&] {
      GlobalArray array(world, {10}, world.rank() ? ElementType::float64 : ElementType::float32);
    });
  });
}

TEST("a shape that is wrong at one process or at all is refused at all") {
  run(3, false, [](World& world) {
    (void)same_error(world, EINVAL,
                     [&] { GlobalArray array(world, {world.rank() - 1}, ElementType::float64); });
    check::contains(same_error(world, EINVAL, [&] { GlobalArray array(world, {-2}, ElementType::float64); }),
                    "[-2]");
  });
}

TEST("a distribution for more processes than there are is refused") {
  run(2, false, [](World& world) {
    const auto text = same_error(world, EINVAL, [&] {
      GlobalArray array(world, ElementType::float64, Distribution::regular({10}, 3));
    });
    check::contains(text, "3 processes");
  });
}

TEST_MAIN
