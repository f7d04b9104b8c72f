#include "chem/hf/dither.hpp"

#include <algorithm>
#include <array>
#include <random>

namespace outcore::chem {
namespace {

constexpr std::size_t max_row_length = 65536;  // basis functions, see Basis

struct Sequence {
  std::array<float, dither_period + max_row_length> numbers;
  Sequence() {
    std::mt19937_64 random(20260922);
    for (std::size_t at = 0; at < dither_period; ++at) {
      const double within = double(random() >> 11) * 0x1p-53;
      numbers[at] = float((double(at) + within) / double(dither_period) - 0.5);
    }
    for (std::size_t at = dither_period - 1; at > 0; --at)
      std::swap(numbers[at], numbers[std::size_t(random() % (at + 1))]);
    for (std::size_t at = dither_period; at < numbers.size(); ++at) numbers[at] = numbers[at - dither_period];
  }
};

}  // namespace

const float* dither_sequence() noexcept {
  static const Sequence sequence;
  return sequence.numbers.data();
}

std::uint16_t dither_seed(int i, int j, int k, int l) noexcept {
  std::uint64_t mixed = 0;
  for (const int shell : {i, j, k, l}) {
    mixed = (mixed ^ std::uint64_t(shell)) * 0x9e3779b97f4a7c15u;
    mixed ^= mixed >> 32;
  }
  return std::uint16_t(mixed >> 16);
}

}  // namespace outcore::chem
