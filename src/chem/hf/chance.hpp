// Pseudo-random numbers that belong to quartets of shells: the same at any process, in any pass.
#pragma once

#include <cmath>
#include <cstdint>

namespace outcore::chem {

/// A sequence of numbers, uniform in (0, 1), that the shells, the part of their integrals and the purpose
/// determine (splitmix64: Steele, Lea, Flood, OOPSLA 2014). Sequences of different arguments are independent
/// of each other.
class Chance {
 public:
  enum class Purpose : std::uint8_t { screening = 1, rare, packing };

  Chance(Purpose purpose, int i, int j, int k = 0, int l = 0, int part = 0) noexcept
      : state_(mixed(
            (std::uint64_t(i) << 48 | std::uint64_t(j) << 32 | std::uint64_t(k) << 16 | std::uint64_t(l)) +
            std::uint64_t(purpose) * 0xd1b54a32d192ed03u + std::uint64_t(part) * 0x8cb92ba72f3d8dd7u)) {}

  [[nodiscard]] double next() noexcept {
    state_ += 0x9e3779b97f4a7c15u;
    return (double(mixed(state_) >> 11) + 0.5) * 0x1p-53;
  }
  /// A waiting time of mean 1.
  [[nodiscard]] double wait() noexcept { return -std::log(next()); }

 private:
  static std::uint64_t mixed(std::uint64_t x) noexcept {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
  }

  std::uint64_t state_;
};

}  // namespace outcore::chem
