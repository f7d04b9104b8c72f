// The loop of a product, against loops over all elements, and with failures.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "array/support.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"
#include "tensor/product.hpp"

using namespace outcore;
using namespace outcore::tensor;

namespace {

constexpr std::int64_t size = sizeof(double);

/// dgemm of Fortran.
void gemm(const char* trans_a, const char* trans_b, const std::int64_t* m, const std::int64_t* n,
          const std::int64_t* k, const double* alpha, const double* a, const std::int64_t* lda,
          const double* b, const std::int64_t* ldb, const double* beta, double* c, const std::int64_t* ldc,
          std::size_t, std::size_t) {
  for (std::int64_t j = 0; j < *n; ++j)
    for (std::int64_t i = 0; i < *m; ++i) {
      double sum = 0;
      for (std::int64_t l = 0; l < *k; ++l)
        sum += (*trans_a == 'N' ? a[i + l * *lda] : a[l + i * *lda]) *
               (*trans_b == 'N' ? b[l + j * *ldb] : b[j + l * *ldb]);
      double& element = c[i + j * *ldc];
      element = *alpha * sum + (*beta == 0 ? 0 : *beta * element);
    }
}

Multiply scaled(double alpha) {
  return multiply_by({.dgemm = gemm}, ElementType::float64, &alpha);
}

/// One axis of `extent` elements in cells, each of which is a panel.
Group axis(std::int64_t extent, std::int64_t cell) {
  std::vector<std::int64_t> intervals;
  std::vector<std::vector<std::int32_t>> members;
  for (std::int64_t begin = 0; begin < extent; begin += cell) {
    members.push_back({static_cast<std::int32_t>(members.size())});
    intervals.insert(intervals.end(), {begin, std::min(begin + cell, extent)});
  }
  return {1, intervals, members};
}

constexpr std::int64_t batch = 2, rows = 11, columns = 7, inner = 9;

/// out[j][b][i] = left[b][i][k] right[k][j][b]
Steps steps_of(std::int64_t cell, int parts) {
  Steps steps{{axis(batch, 1), axis(rows, cell), axis(columns, cell + 1), axis(inner, cell)},
              {Side{{0, 1, 3}, {{0, 0}, {1, 0}, {2, 0}}}, Side{{0, 3, 2}, {{1, 0}, {2, 0}, {0, 0}}},
               Side{{0, 1, 2}, {{2, 0}, {0, 0}, {1, 0}}}},
              {},
              {}};
  const auto count = [&](std::size_t group) { return static_cast<int>(steps.groups[group].members.size()); };
  for (int b = 0; b < count(0); ++b)
    for (int i = 0; i < count(1); ++i)
      for (int j = 0; j < count(2); ++j)
        for (int part = 0; part < parts; ++part) {
          for (int k = count(3) * part / parts; k < count(3) * (part + 1) / parts; ++k)
            steps.steps.push_back({b, i, j, k});
          steps.task_ends.push_back(std::ssize(steps.steps));
        }
  steps.check();
  return steps;
}

struct Values {
  std::vector<double> left, right, out, expected;
  explicit Values(double scale, bool add) {
    for (std::int64_t i = 0; i < batch * rows * inner; ++i) left.push_back(double(i % 13) - 5);
    for (std::int64_t i = 0; i < inner * columns * batch; ++i) right.push_back(double(i % 11) - 4);
    out.assign(static_cast<std::size_t>(columns * batch * rows), 3.0);
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t i = 0; i < rows; ++i) {
          double sum = 0;
          for (std::int64_t k = 0; k < inner; ++k)
            sum += left[static_cast<std::size_t>((b * rows + i) * inner + k)] *
                   right[static_cast<std::size_t>((k * columns + j) * batch + b)];
          expected.push_back(scale * sum + (add ? 3.0 : 0.0));
        }
  }
};

Strided memory_of(std::vector<double>& values, const Extents& shape) {
  return {reinterpret_cast<std::byte*>(values.data()), row_major(shape, sizeof(double))};
}

/// Memory whose transfers complete in their waits; the transfer `fails_at` fails. Panels must be copied, as
/// they cannot be accessed in place.
class Late : public MemoryBoxes {
 public:
  Late(const Strided& where, int fails_at = -1)
      : MemoryBoxes(where, ElementType::float64), fails_at_(fails_at) {}
  void get(const Box& box, const Strided& to, Waits& waits) override {
    later(waits, [this, box, to](Waits& none) { MemoryBoxes::get(box, to, none); });
  }
  void put(const Box& box, const Strided& from, bool add, Waits& waits) override {
    later(waits, [this, box, from, add](Waits& none) { put_now(box, from, add, none); });
  }
  [[nodiscard]] std::optional<Strided> view(const Box& box) override {
    return is_moving_ ? MemoryBoxes::view(box) : std::nullopt;
  }
  int begun = 0, waited = 0;
  int most = 0;  ///< on their way at a time

 private:
  void put_now(const Box& box, const Strided& from, bool add, Waits& none) {
    MemoryBoxes::put(box, from, add, none);
  }
  template <class Move>
  void later(Waits& waits, Move move) {
    waits.emplace_back([this, move, number = begun++] {
      ++waited;
      if (number == fails_at_) throw std::runtime_error("transfer " + std::to_string(number));
      Waits none;
      is_moving_ = true;
      move(none);
      is_moving_ = false;
    });
    most = std::max(most, begun - waited);
  }
  int fails_at_;
  bool is_moving_ = false;
};

const Extents left_shape{batch, rows, inner}, right_shape{inner, columns, batch},
    out_shape{columns, batch, rows};

bool never(double, std::int64_t) {
  return false;
}

}  // namespace

TEST("a product is right in any panels, with any threads and buffers") {
  for (const std::int64_t cell : {2, 4, 20})
    for (const int threads : {1, 3})
      for (const int slots : {1, 2, 4})
        for (const int results : {1, 2})
          for (const bool add : {false, true}) {
            const Steps steps = steps_of(cell, 1);
            Values values(0.5, add);
            Late left(memory_of(values.left, left_shape)), right(memory_of(values.right, right_shape)),
                out(memory_of(values.out, out_shape));
            const Moved moved = carry_out(steps,
                                          {.slots = {slots, slots + 1},
                                           .results = results,
                                           .unit = 2,
                                           .hinted = 3,
                                           .threads = threads,
                                           .add = add,
                                           .one_put = results == 1},
                                          {left, right, out}, scaled(0.5), nullptr, never);
            check::is_true(values.out == values.expected);
            check::equal(moved.put, columns * batch * rows);
            check::equal(moved.flops, 2.0 * batch * rows * columns * inner);
            check::equal(left.begun, left.waited);
            check::equal(out.begun, out.waited);
          }
}

TEST("parts of the inner indices are added") {
  const Steps steps = steps_of(2, 3);
  Values values(1, true);
  MemoryBoxes left(memory_of(values.left, left_shape), ElementType::float64),
      right(memory_of(values.right, right_shape), ElementType::float64),
      out(memory_of(values.out, out_shape), ElementType::float64);
  (void)carry_out(steps, {.slots = {2, 2}, .add = true}, {left, right, out}, scaled(1), nullptr, never);
  check::is_true(values.out == values.expected);
}

TEST("a result without products is zero, and cells that are zero are not read") {
  Steps steps = steps_of(20, 1);
  steps.sides[0].flags = {0, 1};  // of two batches
  for (Step& step : steps.steps)
    if (step.batch == 0) step.inner = -1;
  Values values(1, false);
  std::fill_n(values.left.begin(), rows * inner, 1e300);  // batch 0
  Late left(memory_of(values.left, left_shape)), right(memory_of(values.right, right_shape)),
      out(memory_of(values.out, out_shape));
  const Moved moved = carry_out(steps, {.slots = {2, 2}}, {left, right, out}, scaled(1), nullptr, never);
  for (std::size_t i = 0; i < values.out.size(); ++i)
    check::equal(values.out[i], i / rows % batch == 0 ? 0.0 : values.expected[i]);
  check::equal(moved.got[0], rows * inner);
}

/// Shares of `processes` in cells that may be cut between any two elements.
Shares even(const Steps& steps, int group, int processes) {
  Shares shares{group, {}};
  for (const std::int64_t elements : steps.groups[static_cast<std::size_t>(group)].panels) {
    auto& bounds = shares.bounds.emplace_back();
    for (int i = 0; i <= processes; ++i) bounds.push_back(elements * i / processes);
  }
  return shares;
}

TEST("processes that share panels make each result together, and read each panel once") {
  for (const int group : {0, 1, 2})
    for (const std::int64_t cell : {2, 4, 20})
      for (const int slots : {1, 3}) {
        const Steps steps = steps_of(cell, 1);
        Values values(0.5, false);
        std::atomic<std::int64_t> got = 0;
        arrays::run(3, false, [&](World& world) {
          NodePanels memory(world, {slots, slots + 1}, {20 * 20 * size, 20 * 20 * size}, 100);
          Late left(memory_of(values.left, left_shape)), right(memory_of(values.right, right_shape)),
              out(memory_of(values.out, out_shape));
          const Moved moved = carry_out(
              steps, {.slots = {slots, slots + 1}, .unit = 2, .hinted = 5, .threads = 2}, {left, right, out},
              scaled(0.5), nullptr, never, {&memory, even(steps, group, world.size())});
          got += moved.got[0];
        });
        check::is_true(values.out == values.expected);
        Late left(memory_of(values.left, left_shape)), right(memory_of(values.right, right_shape)),
            out(memory_of(values.out, out_shape));
        const Moved alone = carry_out(steps, {.slots = {slots, slots + 1}, .unit = 2}, {left, right, out},
                                      scaled(0.5), nullptr, never);
        check::equal(got.load(), alone.got[0]);
      }
}

/// out[i][j] = a[i][k] a[j][k], whose tasks make panels with no more columns than rows. With `at_once` one
/// task makes all panels of the result.
Steps half_of_square(std::int64_t cell, bool at_once, std::int64_t side = rows, std::int64_t depth = inner) {
  Steps steps{{axis(1, 1), axis(side, cell), axis(side, cell), axis(depth, cell)},
              {Side{{0, 1, 3}, {{0, 0}, {1, 0}, {2, 0}}}, Side{{0, 3, 2}, {{0, 0}, {2, 0}, {1, 0}}},
               Side{{0, 1, 2}, {{0, 0}, {1, 0}, {2, 0}}}},
              {},
              {},
              true};
  const auto count = [&](std::size_t group) { return static_cast<int>(steps.groups[group].members.size()); };
  for (int k = 0; at_once && k < count(3); ++k)
    for (int i = 0; i < count(1); ++i)
      for (int j = 0; j <= i; ++j) steps.steps.push_back({0, i, j, k});
  for (int i = 0; !at_once && i < count(1); ++i)
    for (int j = 0; j <= i; ++j) {
      for (int k = 0; k < count(3); ++k) steps.steps.push_back({0, i, j, k});
      steps.task_ends.push_back(std::ssize(steps.steps));
    }
  if (at_once) steps.task_ends.push_back(std::ssize(steps.steps));
  steps.check();
  return steps;
}

/// Memory whose panels are copied when they are asked for.
class Copied : public MemoryBoxes {
 public:
  using MemoryBoxes::MemoryBoxes;
  void get(const Box& box, const Strided& to, Waits& waits) override {
    is_copying_ = true;
    MemoryBoxes::get(box, to, waits);
    is_copying_ = false;
  }
  [[nodiscard]] std::optional<Strided> view(const Box& box) override {
    return is_copying_ ? MemoryBoxes::view(box) : std::nullopt;
  }

 private:
  bool is_copying_ = false;
};

TEST("a panel comes in place of another only when no step needs that any more") {
  constexpr std::int64_t side = 90, depth = 700;  // enough for threads
  std::vector<double> a(static_cast<std::size_t>(side * depth)), expected(side * side);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = double(i % 13) - 5;
  for (std::size_t i = 0; i < side; ++i)
    for (std::size_t j = 0; j < side; ++j)
      for (std::size_t k = 0; k < depth; ++k) expected[i * side + j] += a[i * depth + k] * a[j * depth + k];
  const Steps steps = half_of_square(18, true, side, depth);
  for (const int slots : {2, 4, 5, 8})  // of five rows of panels
    for (const int threads : {1, 2, 5}) {
      std::vector<double> found(expected.size());
      Copied left(memory_of(a, {1, side, depth}), ElementType::float64),
          right(memory_of(a, {1, side, depth}), ElementType::float64);
      MemoryBoxes out(memory_of(found, {1, side, side}), ElementType::float64);
      const Moved moved = carry_out(steps, {.slots = {slots, 0}, .results = 15, .threads = threads},
                                    {left, right, out}, scaled(1), nullptr, never);
      check::is_true(found == expected);
      if (slots >= 5) check::equal(moved.got[0], side * depth);  // each panel once
    }
}

TEST("as many panels as there are slots come or are used, whatever step is multiplied") {
  const Steps steps = steps_of(1, 1);  // each needs two other panels than the one before
  Values values(1, false);
  Late left(memory_of(values.left, left_shape)), right(memory_of(values.right, right_shape)),
      out(memory_of(values.out, out_shape));
  const Multiply multiply = scaled(1);
  int multiplied = 0;
  const Multiply counted = [&](const Matrices& x, const Matrices& y, const Matrices& z, bool add) {
    const int expected = std::min<int>(multiplied + 3, static_cast<int>(steps.steps.size()));
    check::equal(left.begun, expected);
    check::equal(right.begun, expected);
    ++multiplied;
    multiply(x, y, z, add);
  };
  (void)carry_out(steps, {.slots = {3, 3}}, {left, right, out}, counted, nullptr, never);
  check::is_true(values.out == values.expected);
}

TEST("threads divide a step where the slots have no panels for as many steps") {
  const Steps steps = half_of_square(2, true);
  const auto count = std::ssize(steps.steps);
  for (const auto& [slots, parts] : {std::pair(8, count), std::pair(2, 2 * count - 5)}) {  // not 1 x 1
    std::vector<double> a(static_cast<std::size_t>(rows * inner), 1.0), found(rows * rows);
    MemoryBoxes left(memory_of(a, {1, rows, inner}), ElementType::float64),
        right(memory_of(a, {1, rows, inner}), ElementType::float64),
        out(memory_of(found, {1, rows, rows}), ElementType::float64);
    const Multiply multiply = scaled(1);
    std::atomic<std::ptrdiff_t> made = 0;
    const Multiply counted = [&](const Matrices& x, const Matrices& y, const Matrices& z, bool add) {
      ++made;
      multiply(x, y, z, add);
    };
    (void)carry_out(steps, {.slots = {slots, 0}, .results = 21, .threads = 2}, {left, right, out}, counted,
                    nullptr, never);
    check::equal(made.load(), parts);
    check::is_true(std::ranges::all_of(found, [](double each) { return each == inner; }));
  }
}

TEST("half of a symmetric result is made, and put twice") {
  const Extents shape{1, rows, inner}, square{1, rows, rows};
  std::vector<double> a(static_cast<std::size_t>(rows * inner));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = double(i % 13) - 5;
  for (const bool add : {false, true}) {
    std::vector<double> expected(static_cast<std::size_t>(rows * rows));
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < rows; ++j) {
        double& sum = expected[i * rows + j] = add ? double(i) - 2 * double(j) : 0.0;
        for (std::size_t k = 0; k < inner; ++k) sum += a[i * inner + k] * a[j * inner + k];
      }
    const auto before = [&] {
      std::vector<double> found(expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) found[i] = double(i / rows) - 2 * double(i % rows);
      return found;
    };
    for (const auto& [cell, at_once, slots] :
         std::vector<std::tuple<std::int64_t, bool, std::array<int, 2>>>{{2, false, {2, 2}},
                                                                         {4, false, {4, 0}},
                                                                         {20, false, {2, 2}},
                                                                         {2, true, {8, 0}},
                                                                         {4, true, {3, 0}}}) {
      const Steps steps = half_of_square(cell, at_once);
      const int results = at_once ? 21 : 1;
      std::vector<double> found = before();
      MemoryBoxes left(memory_of(a, shape), ElementType::float64),
          right(memory_of(a, shape), ElementType::float64),
          there(memory_of(found, square), ElementType::float64);
      const Moved moved = carry_out(steps, {.slots = slots, .results = results, .threads = 2, .add = add},
                                    {left, right, there}, scaled(1), nullptr, never);
      check::is_true(found == expected);
      if (slots[1] == 0) check::equal(moved.got[1], 0);
      if (at_once && slots[0] == 8) check::equal(moved.got[0], rows * inner);  // each panel once
      check::equal(moved.put, rows * rows);
      for (const int group : {1, 2}) {
        std::vector<double> shared = before();
        arrays::run(3, false, [&](World& world) {
          NodePanels memory(world, slots, {20 * 20 * size, 20 * 20 * size}, 100);
          Late mine(memory_of(a, shape)), other(memory_of(a, shape)), out(memory_of(shared, square));
          (void)carry_out(steps, {.slots = slots, .results = results, .add = add}, {mine, other, out},
                          scaled(1), nullptr, never, {&memory, even(steps, group, world.size())});
          check::equal(out.begun, out.waited);
        });
        check::is_true(shared == expected);
      }
    }
  }
}

TEST("where one result is put at a time, its mirror image comes after it") {
  const Steps steps = half_of_square(4, false);
  std::vector<double> a(static_cast<std::size_t>(rows * inner), 1.0), found(rows * rows);
  MemoryBoxes left(memory_of(a, {1, rows, inner}), ElementType::float64),
      right(memory_of(a, {1, rows, inner}), ElementType::float64);
  for (const bool one_put : {false, true}) {
    Late out(memory_of(found, {1, rows, rows}));
    (void)carry_out(steps, {.slots = {2, 2}, .results = 2, .one_put = one_put}, {left, right, out}, scaled(1),
                    nullptr, never);
    check::equal(out.most == 1, one_put);
    check::is_true(std::ranges::all_of(found, [](double each) { return each == inner; }));
  }
}

TEST("memory for fewer panels than a task makes, and panels of one array that is two, are refused") {
  Values values(1, false);
  MemoryBoxes left(memory_of(values.left, left_shape), ElementType::float64),
      right(memory_of(values.right, right_shape), ElementType::float64),
      out(memory_of(values.out, out_shape), ElementType::float64);
  const auto refused = [&](const Steps& steps, const Execution& how) {
    return check::throws<Error>(
               [&] { (void)carry_out(steps, how, {left, right, out}, scaled(1), nullptr, never); })
        .errno_value();
  };
  check::equal(refused(half_of_square(4, true), {.slots = {8, 0}, .results = 5}), EINVAL);
  check::equal(refused(steps_of(4, 1), {.slots = {8, 0}}), EINVAL);
  check::equal(refused(steps_of(4, 1), {.slots = {0, 1}}), EINVAL);
  check::equal(refused(steps_of(4, 1), {.slots = {2, 2}, .unit = 0}), EINVAL);
}

TEST("a product without threads is refused") {
  Values values(1, false);
  MemoryBoxes left(memory_of(values.left, left_shape), ElementType::float64),
      right(memory_of(values.right, right_shape), ElementType::float64),
      out(memory_of(values.out, out_shape), ElementType::float64);
  for (const int threads : {0, -1}) {
    const auto error = check::throws<Error>([&] {
      (void)carry_out(steps_of(4, 1), {.slots = {2, 2}, .threads = threads}, {left, right, out}, scaled(1),
                      nullptr, never);
    });
    check::equal(error.errno_value(), EINVAL);
    check::contains(error.what(), "there are " + std::to_string(threads) + " threads");
  }
}

TEST("panels of a task that end in another order than they begin are refused") {
  Steps steps = half_of_square(4, true);
  std::swap(steps.steps[steps.steps.size() - 1], steps.steps[steps.steps.size() - 2]);
  check::equal(check::throws<Error>([&] { steps.check(); }).errno_value(), EINVAL);
}

TEST("half of a result whose rows and columns are cut differently is refused") {
  Steps steps = steps_of(4, 1);
  steps.half = true;
  check::equal(check::throws<Error>([&] { steps.check(); }).errno_value(), EINVAL);
}

TEST("what one of several processes that share panels fails with ends the others") {
  for (const int fails_at : {0, 3})
    for (const int which : {0, 1, 2}) {
      const Steps steps = steps_of(2, 1);
      Values values(1, false);
      std::atomic<int> failed = 0;
      arrays::run(3, false, [&](World& world) {
        const int here = world.rank() == 1 ? fails_at : -1;
        NodePanels memory(world, {2, 2}, {1000, 1000}, 1000);
        Counter counter(world);
        Late left(memory_of(values.left, left_shape), which == 0 ? here : -1),
            right(memory_of(values.right, right_shape), which == 1 ? here : -1),
            out(memory_of(values.out, out_shape), which == 2 ? here : -1);
        try {
          (void)carry_out(steps, {.slots = {2, 2}}, {left, right, out}, scaled(1), &counter, never,
                          {&memory, even(steps, 1, world.size())});
        } catch (const std::runtime_error&) {
          check::equal(world.rank(), 1);
          ++failed;
        }
        check::equal(left.begun, left.waited);
        check::equal(out.begun, out.waited);
        world.barrier();
      });
      check::equal(failed.load(), 1);
    }
}

TEST("shares that are not all of a panel are refused") {
  const Steps steps = steps_of(4, 1);
  even(steps, 1, 3).check(steps.groups, 3);
  Shares shares = even(steps, 1, 3);
  shares.bounds.back().back() -= 1;
  check::throws<Error>([&] { shares.check(steps.groups, 3); });
  check::throws<Error>([&] { even(steps, 1, 3).check(steps.groups, 2); });
  const Group pairs(2, {0, 2, 0, 4}, {{0}});  // 2 x 4 elements: only the two are divided
  const Groups groups{pairs, pairs, pairs, pairs};
  Shares{1, {{0, 4, 8}}}.check(groups, 2);
  check::throws<Error>([&] { Shares{1, {{0, 3, 8}}}.check(groups, 2); });
  shares.group = 3;
  check::throws<Error>([&] { shares.check(steps.groups, 3); });
}

TEST("the first error of a transfer is thrown, and none is under way afterwards") {
  for (const int fails_at : {0, 3})
    for (const int which : {0, 1, 2}) {
      const Steps steps = steps_of(2, 1);
      Values values(1, false);
      Late left(memory_of(values.left, left_shape), which == 0 ? fails_at : -1),
          right(memory_of(values.right, right_shape), which == 1 ? fails_at : -1),
          out(memory_of(values.out, out_shape), which == 2 ? fails_at : -1);
      const auto error = check::throws<std::runtime_error>([&] {
        (void)carry_out(steps, {.slots = {3, 3}, .results = 2, .threads = 2}, {left, right, out}, scaled(1),
                        nullptr, never);
      });
      check::contains(error.what(), "transfer " + std::to_string(fails_at));
      check::equal(left.begun, left.waited);
      check::equal(right.begun, right.waited);
      check::equal(out.begun, out.waited);
    }
}

TEST("an error of a multiplication is thrown") {
  const Steps steps = steps_of(2, 1);
  Values values(1, false);
  Late left(memory_of(values.left, left_shape)), right(memory_of(values.right, right_shape)),
      out(memory_of(values.out, out_shape));
  const Multiply fails = [](const Matrices&, const Matrices&, const Matrices&, bool) {
    throw std::runtime_error("no");
  };
  check::throws<std::runtime_error>([&] {
    (void)carry_out(steps, {.slots = {2, 2}, .threads = 2}, {left, right, out}, fails, nullptr, never);
  });
  check::equal(left.begun, left.waited);
}

TEST("an error of whoever watches is thrown, and it ends the work when it says so") {
  const Steps steps = steps_of(2, 1);
  Values values(1, false);
  Late left(memory_of(values.left, left_shape)), right(memory_of(values.right, right_shape)),
      out(memory_of(values.out, out_shape));
  const Multiply slow = [](const Matrices&, const Matrices&, const Matrices&, bool) {
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
  };
  check::throws<std::runtime_error>([&] {
    (void)carry_out(steps, {.slots = {2, 2}}, {left, right, out}, slow, nullptr,
                    [](double, std::int64_t) -> bool { throw std::runtime_error("watch"); });
  });
  const Moved moved = carry_out(steps, {.slots = {2, 2}}, {left, right, out}, slow, nullptr,
                                [](double, std::int64_t) { return true; });
  check::is_true(moved.put < columns * batch * rows);
  check::equal(left.begun, left.waited);
}

TEST("steps of panels that are not there are refused") {
  Steps steps = steps_of(2, 1);
  steps.steps.back().rows = 100;
  check::throws<Error>([&] { steps.check(); });
  steps = steps_of(2, 1);
  steps.task_ends.back() += 1;
  check::throws<Error>([&] { steps.check(); });
  steps = steps_of(2, 1);
  steps.sides[1].axes.pop_back();
  check::throws<Error>([&] { steps.check(); });
  steps = steps_of(2, 1);
  steps.sides[2].flags = {1};
  check::throws<Error>([&] { steps.check(); });
}

TEST_MAIN
