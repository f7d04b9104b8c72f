#include "chem/ri/three_center_gradient.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <string>

#include "base/thread_team.hpp"
#include "outcore/error.hpp"

namespace outcore::chem {
namespace {

// Slots of libcint's tables, as in basis.cpp.
constexpr std::size_t atom_slots = 6, shell_slots = 8, atom_slot = 0, angular_slot = 1, contraction_slot = 3;

using Vector = std::array<double, 3>;

Error misuse(const std::string& what) {
  return Error(EINVAL, {.attempted = "derivatives of three-centre integrals", .detail = what});
}

void add_to(double* gradient, int atom, const Vector& force, double factor) {
  for (std::size_t x = 0; x < 3; ++x) gradient[std::size_t(atom) * 3 + x] += factor * force[x];
}

}  // namespace

ThreeCenterGradient::ThreeCenterGradient(std::span<const int> atm, std::span<const int> bas,
                                         std::span<const double> env, int orbital_shells, bool cartesian,
                                         const Functions& functions)
    : functions_(functions),
      atm_(atm.begin(), atm.end()),
      bas_(bas.begin(), bas.end()),
      env_(env.begin(), env.end()),
      orbital_shells_(orbital_shells),
      atoms_(int(atm.size() / atom_slots)),
      shells_(int(bas.size() / shell_slots)) {
  if (atm.size() % atom_slots != 0 || bas.size() % shell_slots != 0)
    throw misuse("atm and bas must be libcint's tables");
  if (orbital_shells < 1 || orbital_shells >= shells_)
    throw misuse(std::to_string(orbital_shells) + " orbital shells of " + std::to_string(shells_));
  if (!functions.int3c2e_ip1 || !functions.make_optimizer || !functions.delete_optimizer)
    throw misuse("a libcint entry point is missing");
  first_.push_back(0);
  for (int shell = 0; shell < shells_; ++shell) {
    const std::size_t slots = std::size_t(shell) * shell_slots;
    const int l = bas_[slots + angular_slot];
    const int size = (cartesian ? (l + 1) * (l + 2) / 2 : 2 * l + 1) * bas_[slots + contraction_slot];
    if (atom(shell) < 0 || atom(shell) >= atoms_)
      throw misuse("shell " + std::to_string(shell) + " is of no atom");
    first_.push_back(first_.back() + size);
    auto& largest = shell < orbital_shells_ ? largest_orbital_ : largest_auxiliary_;
    largest = std::max(largest, std::size_t(size));
  }
  void* optimizer = nullptr;  // of orbital shells, as for the integrals
  functions_.make_optimizer(&optimizer, atm_.data(), atoms_, bas_.data(), orbital_shells_, env_.data());
  optimizer_ = {optimizer, [release = functions.delete_optimizer](void* held) { release(&held); }};
  for (int i = 0; i < orbital_shells_; ++i)
    for (int k = orbital_shells_; k < shells_; ++k) {
      int shells[3] = {i, i, k};
      work_ = std::max(
          work_, std::size_t(functions_.int3c2e_ip1(nullptr, nullptr, shells, atm_.data(), atoms_,
                                                    bas_.data(), shells_, env_.data(), nullptr, nullptr)));
    }
}

int ThreeCenterGradient::atom(int shell) const noexcept {
  return bas_[std::size_t(shell) * shell_slots + atom_slot];
}

bool ThreeCenterGradient::integrals(int i, int j, int k, double* out, double* work) const {
  int shells[3] = {i, j, k};
  return functions_.int3c2e_ip1(out, nullptr, shells, atm_.data(), atoms_, bas_.data(), shells_, env_.data(),
                                optimizer_.get(), work) != 0;
}

void ThreeCenterGradient::add(std::span<const PairColumns> pairs, int first, int last, const double* z,
                              std::size_t stride, double* gradient, int threads) const {
  if (first < 0 || first > last || last > auxiliary_shells())
    throw misuse("auxiliary shells " + std::to_string(first) + " to " + std::to_string(last) + " of " +
                 std::to_string(auxiliary_shells()));
  for (const auto& pair : pairs)
    if (pair.j < 0 || pair.i < pair.j || pair.i >= orbital_shells_ || pair.column < 0)
      throw misuse("shells " + std::to_string(pair.i) + ", " + std::to_string(pair.j) + " at column " +
                   std::to_string(pair.column) + " of " + std::to_string(orbital_shells_) + " shells");
  std::atomic<std::size_t> counter{0};
  std::mutex guard;
  in_team(int(std::clamp<std::size_t>(pairs.size(), 1, std::size_t(std::max(threads, 1)))), [&](int) {
    std::vector<double> buffer(3 * largest_orbital_ * largest_orbital_ * largest_auxiliary_), work(work_);
    std::vector<double> mine(std::size_t(atoms_) * 3, 0.0);
    for (std::size_t p; (p = counter.fetch_add(1)) < pairs.size();) {
      const auto& [i, j, column] = pairs[p];
      const auto size_i = std::size_t(size(i)), size_j = std::size_t(size(j));
      for (int k = first; k < last; ++k) {
        const int shell = orbital_shells_ + k;
        if (atom(i) == atom(shell) && atom(j) == atom(shell)) continue;  // moved together
        const auto rows = std::size_t(first_auxiliary(k + 1) - first_auxiliary(k));
        const double* const values = z + std::size_t(first_auxiliary(k) - first_auxiliary(first)) * stride;
        // An element of i != j stands for both orders, and each order has its own derivative: the nabla acts
        // on m.
        const auto of_bra = [&](bool swapped) {
          Vector sum{};
          if (!integrals(swapped ? j : i, swapped ? i : j, shell, buffer.data(), work.data())) return sum;
          const double* derivative = buffer.data();
          for (double& component : sum)
            for (std::size_t row = 0; row < rows; ++row) {
              const double* const factors = values + row * stride + std::size_t(column);
              if (!swapped)
                for (std::size_t ab = 0; ab < size_i * size_j; ++ab) component += *derivative++ * factors[ab];
              else
                for (std::size_t a = 0; a < size_i; ++a)
                  for (std::size_t b = 0; b < size_j; ++b)
                    component += *derivative++ * factors[b * size_i + a];
            }
          return sum;
        };
        const Vector of_i = of_bra(false);
        add_to(mine.data(), atom(i), of_i, -2.0);
        add_to(mine.data(), atom(shell), of_i, 2.0);
        if (i == j) continue;
        const Vector of_j = of_bra(true);
        add_to(mine.data(), atom(j), of_j, -2.0);
        add_to(mine.data(), atom(shell), of_j, 2.0);
      }
    }
    const std::lock_guard lock(guard);
    for (std::size_t x = 0; x < mine.size(); ++x) gradient[x] += mine[x];
  });
}

}  // namespace outcore::chem
