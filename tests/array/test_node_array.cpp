// Node arrays in worlds of threads: on one node, and each process a node of its own.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>
#include <string>
#include <utility>

#include "array/support.hpp"
#include "outcore/node_array.hpp"

using namespace arrays;

namespace {

std::span<double> elements(const NodeArray& array) {
  return {reinterpret_cast<double*>(array.view().data), static_cast<std::size_t>(array.shape().product())};
}

}  // namespace

TEST("processes of a node see what each has stored") {
  run(4, false, [](World& world) {
    NodeArray array(world, {4, 1001}, ElementType::float64);
    const auto all = elements(array);
    check::is_true(std::ranges::all_of(all, [](double value) { return value == 0; }));
    array.barrier();
    std::ranges::fill(all.subspan(static_cast<std::size_t>(world.rank()) * 1001, 1001), world.rank() + 1);
    array.barrier();
    for (std::size_t k = 0; k < all.size(); ++k) check::equal(all[k], static_cast<double>(k / 1001 + 1));
    array.barrier();
  });
}

TEST("each node has an array of its own, and waits for no other") {
  run(3, true, [](World& world) {
    for (int round = 0; round <= world.rank(); ++round) {  // a different number of calls on each node
      NodeArray array(world, {10 + world.rank()}, ElementType::float64);
      elements(array)[0] += world.rank() + 1;
      array.barrier();
      check::equal(elements(array)[0], static_cast<double>(world.rank() + 1));
      array.close();
    }
  });
}

TEST("what was stored before a signal is seen by processes that wait for it") {
  run(3, false, [](World& world) {
    constexpr std::int32_t rounds = 200;
    NodeArray array(world, {100}, ElementType::float64);
    NodeArray signals(world, {3}, ElementType::int32);
    const auto all = elements(array);
    const int next = (world.rank() + 1) % 3;
    for (std::int32_t round = 1; round <= rounds; ++round) {  // round the processes, each adds one
      const bool first = world.rank() == 0;
      const std::int32_t wanted = first ? round - 1 : round;
      while (!signals.wait_for(world.rank(), wanted, std::chrono::milliseconds(50))) {
      }
      for (double& value : all) value += 1;
      signals.post(next, round);
    }
    while (!signals.wait_for(0, rounds, std::chrono::milliseconds(50))) {
    }
    for (const double value : all) check::equal(value, 3.0 * rounds);
    check::is_true(!signals.wait_for(0, rounds + 1, std::chrono::milliseconds(1)));
    signals.barrier();
  });
}

TEST("signals are elements of int32 that are there") {
  run(1, false, [](World& world) {
    NodeArray array(world, {3}, ElementType::float64);
    NodeArray signals(world, {3}, ElementType::int32);
    for (const auto& [where, element] : {std::pair(&array, 0), {&signals, 3}, {&signals, -1}}) {
      const Error error = check::throws<Error>([&] { where->post(element, 1); });
      check::equal(error.errno_value(), EINVAL);
      check::contains(error.what(), "signals are elements of int32");
    }
  });
}

TEST("its bytes are in the budgets of a node once") {
  run(4, false, [](World& world) {
    const std::int64_t before = world.budget().used_bytes();
    NodeArray array(world, {1024, 1024}, ElementType::float64);
    check::equal(world.budget().used_bytes() - before, (8 << 20) / 4);
    array.close();
    check::equal(world.budget().used_bytes(), before);
  });
}

TEST("an array of more than the budgets of a node is refused at all its processes") {
  run(2, false, [](World& world) {
    const std::int64_t before = world.budget().used_bytes();
    const Error error =
        check::throws<Error>([&] { NodeArray array(world, {3 * budget_bytes / 8}, ElementType::float64); });
    check::equal(error.errno_value(), ENOMEM);
    check::contains(error.what(), "node array [25165824] of float64");
    check::equal(world.budget().used_bytes(), before);
    NodeArray array(world, {budget_bytes / 8}, ElementType::float64);  // half of it is in each budget
    array.barrier();
  });
}

TEST("different shapes at different processes of a node are refused at all") {
  run(3, false, [](World& world) {
    const Error error = check::throws<Error>(
        [&] { NodeArray array(world, {world.rank() == 1 ? 5 : 6}, ElementType::float64); });
    check::equal(error.errno_value(), EINVAL);
    check::contains(error.what(), "process 1");
  });
}

TEST("a shape that is none is refused") {
  run(2, false, [](World& world) {
    for (const Extents& shape :
         {Extents{}, Extents{-1}, Extents{std::int64_t{1} << 40, std::int64_t{1} << 40}})
      check::equal(
          check::throws<Error>([&] { NodeArray array(world, shape, ElementType::int8); }).errno_value(),
          EINVAL);
  });
}

TEST("an array without elements has a view of none") {
  run(2, false, [](World& world) {
    NodeArray array(world, {0, 3}, ElementType::float64);
    check::equal(elements(array).size(), 0U);
    array.barrier();
  });
}

TEST("a closed node array says so") {
  run(2, false, [](World& world) {
    NodeArray array(world, {4}, ElementType::float64);
    array.close();
    array.close();
    check::equal(check::throws<Error>([&] { (void)array.view(); }).errno_value(), EBADF);
    check::equal(check::throws<Error>([&] { array.barrier(); }).errno_value(), EBADF);
  });
}

TEST_MAIN
