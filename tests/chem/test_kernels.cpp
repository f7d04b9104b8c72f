// Every kernel gives the same results with every instruction set of this processor.
#include <cmath>
#include <random>
#include <vector>

#include "chem/hf/kernels.hpp"
#include "model.hpp"
#include "support/check.hpp"

using namespace outcore;
using namespace outcore::chem;

namespace {

/// Numbers of columns up to more than a register of the widest instruction set holds.
constexpr Widths widths{.n8 = 9, .n4 = 21, .n3 = 18, .n2 = 35, .n1 = 17};

struct Row {
  std::vector<double> values, steps, per_step;
  std::vector<float> dither;
  std::vector<std::int32_t> source;

  explicit Row(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> within(-1, 1);
    const auto columns = widths.columns();
    for (std::size_t c = 0; c < columns; ++c) {
      const int bytes = c < widths.n8 + widths.n4                           ? 4
                        : c < widths.n8 + widths.n4 + widths.n3             ? 3
                        : c < widths.n8 + widths.n4 + widths.n3 + widths.n2 ? 2
                                                                            : 1;
      steps.push_back(1e-10 * (1 + within(random) / 2));
      per_step.push_back(1 / steps.back());
      dither.push_back(float(within(random) / 2));
      values.push_back(within(random) * steps.back() * ((1ll << (8 * bytes - 1)) - 2));
      source.push_back(std::int32_t(c));
    }
    std::swap(source[1], source[5]);  // exact ones in another order
  }
};

/// Calls check(expected table, table) for each variant that runs here, other than the first.
template <class Check>
void for_others(const Check& check) {
  for (const auto& variant : kernels_variants)
    if (variant.set != InstructionSet::any && runs(variant.set)) check(kernels_any, variant.table);
}

}  // namespace

TEST("the largest of columns is the same") {
  for_others([](const Kernels& expected, const Kernels& found) {
    const Row row(1);
    std::vector<double> a(row.values.size(), 1e-9), b = a;
    expected.largest_of_columns(row.values.data(), a.size(), a.data());
    found.largest_of_columns(row.values.data(), b.size(), b.data());
    check::is_true(a == b);
  });
}

TEST("packed rows are the same byte by byte, and so is what is unpacked") {
  for_others([](const Kernels& expected, const Kernels& found) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      const Row row(seed);
      std::vector<std::byte> a(widths.row_bytes()), b(widths.row_bytes());
      const auto pack = [&](const Kernels& table, std::vector<std::byte>& out) {
        table.pack_row(row.values.data(), row.source.data(), widths, row.per_step.data(), row.dither.data(),
                       out.data());
      };
      pack(expected, a), pack(found, b);
      check::is_true(a == b, "packed");
      std::vector<double> x(widths.columns()), y(widths.columns());
      expected.unpack_row(a.data(), widths, row.steps.data(), row.dither.data(), x.data());
      found.unpack_row(a.data(), widths, row.steps.data(), row.dither.data(), y.data());
      check::is_true(x == y, "unpacked");
      for (std::size_t c = widths.n8; c < x.size(); ++c)
        check::is_true(std::abs(x[c] - row.values[c]) <= 0.51 * row.steps[c], "not what was packed");
    }
  });
}

TEST("contractions are the same but for rounding") {
  for (const int rows : {1, 2, 3, 5, 6, 7}) {
    const std::size_t length = 24;
    const auto count = std::size_t(rows);
    std::vector<double> values(count * length), d((count + 2) * length), scalars(2 * count);
    for (std::size_t at = 0; at < values.size(); ++at) values[at] = std::sin(double(at));
    for (std::size_t at = 0; at < d.size(); ++at) d[at] = std::cos(double(at));
    for (std::size_t at = 0; at < scalars.size(); ++at) scalars[at] = 0.1 * double(at) - 0.2;
    const auto run = [&](const Kernels& table) {
      std::vector<double> out(2 * length + count * length + 2 * count + 1);
      double* rest = out.data() + 2 * length;
      PairOfFunctions pair{.length = length,
                           .values = values.data(),
                           .d_a = d.data(),
                           .d_b = d.data() + length,
                           .d_k = d.data() + 2 * length,
                           .k_a = out.data(),
                           .k_b = out.data() + length,
                           .j_k = rest,
                           .d_ab = 0.3,
                           .d_ac = scalars.data(),
                           .d_bc = scalars.data() + count,
                           .j_ab = 0.0,
                           .k_ac = rest + count * length,
                           .k_bc = rest + count * length + count};
      table.contract(pair, rows);
      out.back() = pair.j_ab;
      return out;
    };
    for_others([&](const Kernels& expected, const Kernels& found) {
      check::is_true(model::distance(run(expected), run(found)) < 1e-12);
    });
    check::is_true(model::distance(run(kernels_any), run(kernels())) < 1e-12);
  }
}

TEST_MAIN
