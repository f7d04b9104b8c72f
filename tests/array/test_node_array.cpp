// Node arrays in worlds of threads: on one node, and each process a node of its own.
#include <algorithm>
#include <cerrno>
#include <span>
#include <string>

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
