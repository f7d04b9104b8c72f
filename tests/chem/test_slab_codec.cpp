#include <cstring>
#include <random>

#include "chem/hf/packing.hpp"
#include "chem/hf/slab.hpp"
#include "model.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using namespace outcore::chem;

namespace {

constexpr double step = 1e-10;
const Accuracy accuracy(step);

Slab random_slab(const Basis& basis, std::mt19937_64& random, double smallest, double largest) {
  const auto shell = [&] { return int(random() % std::uint64_t(basis.shells())); };
  Slab slab;
  slab.label(basis, shell(), shell(), shell());
  for (int l = 0; l < basis.shells(); ++l)
    if (random() % 4 != 0 || l == 0) slab.shells.push_back(std::uint16_t(l));
  slab.set_shells(basis);
  std::uniform_real_distribution<double> exponent(std::log10(smallest), std::log10(largest));
  for (std::size_t r = 0; r < slab.rows(); ++r)
    for (std::size_t c = 0; c < slab.columns.size(); ++c)
      slab.row(r)[c] = (random() % 2 ? 1 : -1) * std::pow(10.0, exponent(random));
  return slab;
}

std::vector<std::byte> pack(const Basis& basis, const Slab& slab) {
  std::vector<std::byte> out(SlabCodec::packed_bound(slab));
  out.resize(SlabCodec(accuracy).pack(basis, slab, out.data()));
  return out;
}

/// Largest difference between a slab and its copy, by basis function: columns may come in another order, and
/// missing columns count as zero.
double largest_error(const Slab& slab, const Slab& copy, int functions) {
  double largest = 0;
  std::vector<double> expected(std::size_t(functions), 0.0), found(std::size_t(functions), 0.0);
  for (std::size_t r = 0; r < slab.rows(); ++r) {
    std::ranges::fill(expected, 0.0);
    std::ranges::fill(found, 0.0);
    for (std::size_t c = 0; c < slab.columns.size(); ++c)
      expected[std::size_t(slab.columns[c])] = slab.row(r)[c];
    for (std::size_t c = 0; c < copy.columns.size(); ++c)
      found[std::size_t(copy.columns[c])] = copy.row(r)[c];
    largest = std::max(largest, model::distance(expected, found));
  }
  return largest;
}

}  // namespace

TEST("every value comes back to within half a step, whatever its size") {
  const auto basis = model::basis({0, 1, 2, 0, 3, 1});
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    const double largest = std::pow(10.0, double(random() % 13) - 11);  // 1e-11 ... 10
    const Slab slab = random_slab(*basis, random, largest * 1e-5, largest);
    const auto packed = pack(*basis, slab);
    if (packed.empty()) {
      check::is_true(largest < step);
      continue;
    }
    Slab copy;
    check::equal(SlabCodec::unpack(*basis, packed.data(), packed.size(), copy), packed.size());
    check::equal(copy.i, slab.i);
    check::equal(copy.j, slab.j);
    check::equal(copy.k, slab.k);
    // Rounding in the product with 1/step may add a unit in the last place of the value.
    check::is_true(largest_error(slab, copy, basis->functions()) <=
                   0.5 * step * (1 + 1e-6) + largest * 1e-15);
  }
}

TEST("every value comes back to within half of the step that its column names") {
  const auto basis = model::basis({0, 1, 2, 0, 3, 1});
  std::mt19937_64 random(7);
  for (int round = 0; round < 100; ++round) {
    const double largest = std::pow(10.0, double(random() % 8) - 8);
    const Slab slab = random_slab(*basis, random, largest * 1e-5, largest);
    const auto packed = pack(*basis, slab);
    Slab copy;
    SlabCodec::unpack(*basis, packed.data(), packed.size(), copy);
    for (std::size_t c = 0; c < copy.columns.size(); ++c) {
      check::is_true(copy.steps[c] <= step);
      const auto from = std::size_t(std::ranges::find(slab.columns, copy.columns[c]) - slab.columns.begin());
      for (std::size_t r = 0; r < slab.rows(); ++r)
        check::is_true(std::abs(copy.row(r)[c] - slab.row(r)[from]) <=
                       0.5 * copy.steps[c] * (1 + 1e-6) + largest * 1e-15);
    }
  }
}

TEST("errors are uniform, with no regard to the value, and differ where values are equal") {
  const auto basis = model::basis({0, 1, 2, 0, 3, 1});
  for (double value : {1e-13, 3e-11, 1e-9 / 3, 1e-7}) {
    double sum = 0, squares = 0;
    std::size_t count = 0;
    for (int i = 0; i < basis->shells(); ++i)
      for (int j = 0; j < basis->shells(); ++j) {
        Slab slab;
        slab.label(*basis, i, j, 0);
        for (int l = 0; l < basis->shells(); ++l) slab.shells.push_back(std::uint16_t(l));
        slab.set_shells(*basis);
        for (std::size_t r = 0; r < slab.rows(); ++r)
          for (std::size_t c = 0; c < slab.columns.size(); ++c) slab.row(r)[c] = value;
        for (std::size_t c = 0; c < slab.columns.size(); ++c)
          slab.row(0)[c] = 1e-6;  // one step for all values
        const auto packed = pack(*basis, slab);
        Slab copy;
        SlabCodec::unpack(*basis, packed.data(), packed.size(), copy);
        for (std::size_t r = 1; r < copy.rows(); ++r)
          for (std::size_t c = 0; c < copy.columns.size(); ++c) {
            const double error = (copy.row(r)[c] - value) / copy.steps[c];
            sum += error, squares += error * error, ++count;
          }
      }
    const double n = double(count);
    check::is_true(std::abs(sum / n) < 5 * std::sqrt(1.0 / 12 / n), "biased");
    check::is_true(std::abs(squares / n - 1.0 / 12) < 0.005, "not uniform");
  }
}

TEST("what is not a number, or infinite, is refused") {
  const auto basis = model::basis({0, 1});
  for (double bad : {std::nan(""), HUGE_VAL}) {
    std::mt19937_64 random(8);
    Slab slab = random_slab(*basis, random, 1e-3, 1e-2);
    slab.row(0)[slab.columns.size() - 1] = bad;
    const auto error = check::throws<outcore::Error>([&] { pack(*basis, slab); });
    check::equal(error.errno_value(), outcore::no_errno);
  }
}

TEST("rows come back padded with zeros") {
  const auto basis = model::basis({0, 1});
  std::mt19937_64 random(2);
  const Slab slab = random_slab(*basis, random, 1e-3, 1e-2);
  const auto packed = pack(*basis, slab);
  Slab copy;
  copy.storage.assign(1000, 7.0);
  SlabCodec::unpack(*basis, packed.data(), packed.size(), copy);
  for (std::size_t r = 0; r < copy.rows(); ++r)
    for (std::size_t c = copy.columns.size(); c < copy.row_length; ++c) check::equal(copy.row(r)[c], 0.0);
}

TEST("small values take fewer bytes than large ones") {
  const auto basis = model::basis({1, 1, 1, 1});
  std::mt19937_64 random(3);
  std::size_t last = 0;
  for (double size : {5e-9, 5e-7, 5e-5, 5e-2, 5.0}) {  // 1, 2, 3, 4 and 8 bytes
    std::mt19937_64 same(4);
    const auto bytes = pack(*basis, random_slab(*basis, same, size / 2, size)).size();
    check::is_true(bytes > last);
    last = bytes;
  }
}

TEST("a slab that is all zero takes no space") {
  const auto basis = model::basis({0, 1});
  std::mt19937_64 random(5);
  Slab slab = random_slab(*basis, random, 1e-13, 1e-12);
  std::ranges::fill(slab.storage, 0.0);
  check::is_true(pack(*basis, slab).empty());
}

TEST("shells whose values are far below a step are left out without a bias") {
  const auto basis = model::basis(std::vector<int>(16, 2));
  for (double value : {step / 3, step / 50}) {
    double sum = 0;
    int there = 0, count = 0;
    for (int i = 0; i < basis->shells(); ++i)
      for (int j = 0; j <= i; ++j)
        for (int k = 0; k <= i; ++k) {
          Slab slab;
          slab.label(*basis, i, j, k);
          for (int l = 0; l < basis->shells(); ++l) slab.shells.push_back(std::uint16_t(l));
          slab.set_shells(*basis);
          for (std::size_t r = 0; r < slab.rows(); ++r) std::fill_n(slab.row(r), slab.columns.size(), value);
          count += basis->shells();
          const auto packed = pack(*basis, slab);
          if (packed.empty()) continue;
          Slab copy;
          SlabCodec::unpack(*basis, packed.data(), packed.size(), copy);
          there += int(copy.shells.size());
          for (std::size_t c = 0; c < copy.columns.size(); ++c) sum += copy.row(0)[c] / basis->size(0);
        }
    const double expected = value / accuracy.limit(0, 0, 0, 0);
    check::is_true(std::abs(double(there) / count - expected) < 4 * std::sqrt(expected / count));
    check::is_true(std::abs(sum / count / value - 1) < 4 / std::sqrt(expected * count), "biased");
  }
}

TEST("damaged bytes are refused, never read beyond") {
  const auto basis = model::basis({0, 1, 2});
  std::mt19937_64 random(6);
  const auto good = pack(*basis, random_slab(*basis, random, 1e-6, 1e-2));
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    auto bad = good;
    bad[random() % 24] ^= std::byte(1u << (random() % 8));  // labels and sizes
    Slab copy;
    try {
      SlabCodec::unpack(*basis, bad.data(), bad.size(), copy);
    } catch (const outcore::Error& error) {
      check::equal(error.errno_value(), EIO);
      ++refused;
    }
  }
  check::is_true(refused > 1000);
  Slab copy;
  check::throws<outcore::Error>([&] { SlabCodec::unpack(*basis, good.data(), good.size() - 8, copy); });
  check::throws<outcore::Error>([&] { SlabCodec::unpack(*basis, good.data(), 4, copy); });
}

TEST("a label takes no memory for what its slab does not have") {
  const auto basis = model::basis({4, 4, 4});
  std::mt19937_64 random(5);
  const Slab slab = random_slab(*basis, random, 1e-3, 1);
  auto bytes = pack(*basis, slab);
  PackedSlab head;
  std::memcpy(&head, bytes.data(), sizeof head);
  head.shells = 60000, head.n1 = head.n2 = head.n3 = head.n4 = head.n8 = 0xffff;
  bytes.resize(1 << 20);
  head.bytes = std::uint32_t(bytes.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  std::fill(bytes.begin() + sizeof head, bytes.end(), std::byte{0});  // all of them shell 0
  Slab copy;
  check::throws<outcore::Error>([&] { SlabCodec::unpack(*basis, bytes.data(), bytes.size(), copy); });
  check::is_true(copy.storage.size() <= slab.storage.size());
}

TEST_MAIN
