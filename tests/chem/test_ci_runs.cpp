// Every inner loop computes what it promises, with every instruction set of this processor.
#include <cmath>
#include <random>
#include <vector>

#include "chem/ci/run_kernels.hpp"
#include "support/check.hpp"

using namespace outcore;
using namespace outcore::chem::ci;

namespace {

template <class Real>
std::vector<Real> random_numbers(std::size_t count) {
  std::mt19937_64 random(count);
  std::uniform_real_distribution<double> within(-1, 1);
  std::vector<Real> numbers(count);
  for (Real& each : numbers) each = Real(within(random));
  return numbers;
}

template <class Real>
void near(const std::vector<Real>& found, const std::vector<Real>& expected) {
  check::equal(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    check::is_true(std::abs(found[i] - expected[i]) < (sizeof(Real) == 8 ? 1e-14 : 1e-5));
}

/// Calls check(loops) for both types of elements and all instruction sets.
template <class Check>
void for_all(const Check& check) {
  for (const auto& variant : run_kernels_variants)
    if (runs(variant.set)) {
      check(run_loops<double>(variant.table), double{});
      check(run_loops<float>(variant.table), float{});
    }
}

/// Runs of this many orbitals, read and written by numbers of holes that do not fill registers.
struct Runs {
  std::size_t holes = 21, stride = 40;
  int orbitals = 3;
  std::size_t strings = 70, table_stride = 5;
  std::vector<Run> table;

  Runs() {
    std::mt19937_64 random(3);
    for (std::size_t i = 0; i < holes * table_stride; ++i)
      table.push_back(Run(random() % strings) | (random() % 2 ? negative : 0));
  }
  /// each(place in a line, place in a run, sign)
  template <class Each>
  void for_each(int length, const Each& each) const {
    for (std::size_t k = 0; k < holes; ++k)
      for (int s = 0; s < orbitals; ++s)
        for (int c = 0; c < length; ++c) {
          const Run run = table[k * table_stride + std::size_t(s)];
          each(std::size_t(s * length + c) * stride + k,
               (run & ~negative) * std::size_t(length) + std::size_t(c), run & negative ? -1 : 1);
        }
  }
};

}  // namespace

TEST("runs are gathered into lines, and scattered from them") {
  const Runs runs_;
  for_all([&]<class Real>(const RunLoops<Real>& loops, Real) {
    for (int length = 1; length <= 64; ++length) {
      const auto size = runs_.strings * std::size_t(length) + run_margin;
      const std::size_t lines_size = std::size_t(runs_.orbitals * length) * runs_.stride;
      const auto x = random_numbers<Real>(size), from = random_numbers<Real>(lines_size);
      std::vector<Real> lines(lines_size), gathered(lines_size), y = x, sums = x;
      loops.gather(lines.data(), runs_.stride, x.data(), runs_.table.data(), runs_.table_stride, runs_.holes,
                   runs_.orbitals, length);
      loops.scatter(y.data(), from.data(), runs_.stride, runs_.table.data(), runs_.table_stride, runs_.holes,
                    runs_.orbitals, length);
      runs_.for_each(length, [&](std::size_t line, std::size_t run, int sign) {
        check::equal(lines[line], Real(sign) * x[run]);
        sums[run] += Real(sign) * from[line];
      });
      near(y, sums);
    }
  });
}

TEST("rows become runs, and runs are added to rows") {
  for_all([]<class Real>(const RunLoops<Real>& loops, Real) {
    for (int length : {1, 2, 5, 8, 9, 17, 64})
      for (std::size_t columns : {1, 7, 8, 30}) {
        const auto n = std::size_t(length);
        auto data = random_numbers<Real>(n * columns);
        const auto signs = random_numbers<Real>(n), y = random_numbers<Real>(n * columns + run_margin);
        std::vector<Real*> rows(n);
        for (std::size_t c = 0; c < n; ++c) rows[c] = c % 3 == 1 ? nullptr : &data[c * columns];
        std::vector<Real> x(n * columns + run_margin), expected(n * columns), sums = data;
        loops.interleave(x.data(), rows.data(), signs.data(), length, columns);
        for (std::size_t c = 0; c < n; ++c)
          for (std::size_t b = 0; b < columns; ++b) {
            expected[b * n + c] = rows[c] ? signs[c] * rows[c][b] : 0;
            if (rows[c]) sums[c * columns + b] += signs[c] * y[b * n + c];
          }
        x.resize(n * columns);
        near(x, expected);
        loops.add_interleaved(rows.data(), signs.data(), y.data(), length, columns);
        near(data, sums);
      }
  });
}

TEST("matrices are transposed, and added to, up to their edges") {
  for_all([]<class Real>(const RunLoops<Real>& loops, Real) {
    for (std::size_t rows : {1, 8, 19})
      for (std::size_t columns : {1, 7, 16, 33}) {
        const std::size_t from_stride = columns + 3, to_stride = rows + 2;
        const auto from = random_numbers<Real>(rows * from_stride);
        const auto before = random_numbers<Real>(columns * to_stride);
        auto copied = before, added = before, expected = before, sums = before;
        loops.transpose(copied.data(), to_stride, from.data(), from_stride, rows, columns);
        loops.add_transposed(added.data(), to_stride, from.data(), from_stride, rows, columns);
        for (std::size_t i = 0; i < rows; ++i)
          for (std::size_t j = 0; j < columns; ++j) {
            expected[j * to_stride + i] = from[i * from_stride + j];
            sums[j * to_stride + i] += from[i * from_stride + j];
          }
        near(copied, expected);
        near(added, sums);
      }
  });
}

TEST("sums, differences and selections") {
  for_all([]<class Real>(const RunLoops<Real>& loops, Real) {
    const std::size_t count = 37;
    const auto a = random_numbers<Real>(count), b = random_numbers<Real>(count + 1);
    std::vector<Real> plus(count), minus(count), sum(count), twice(count), selected(count);
    loops.combine(a.data(), b.data(), plus.data(), minus.data(), count);
    loops.combine(a.data(), a.data(), twice.data(), nullptr, count);
    sum = a;
    loops.add(sum.data(), b.data(), count);
    std::vector<std::int32_t> at;
    for (std::size_t i = 0; i < count; ++i) at.push_back(std::int32_t((7 * i) % count));
    loops.select(selected.data(), b.data(), at.data(), a.data(), int(count));
    for (std::size_t i = 0; i < count; ++i) {
      check::equal(plus[i], a[i] + b[i]);
      check::equal(minus[i], a[i] - b[i]);
      check::equal(sum[i], a[i] + b[i]);
      check::equal(twice[i], a[i] + a[i]);
      check::equal(selected[i], a[i] * b[std::size_t(at[i])]);
    }
  });
}

TEST_MAIN
