#include "chem/ri/three_center.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <functional>
#include <string>

#include "base/thread_team.hpp"
#include "outcore/error.hpp"

namespace outcore::chem {
namespace {

// Slots of libcint's tables, as in basis.cpp.
constexpr std::size_t atom_slots = 6, shell_slots = 8, angular_slot = 1, contraction_slot = 3;

Error misuse(const std::string& what) {
  return Error(EINVAL, {.attempted = "three-centre integrals", .detail = what});
}

/// Calls work(next) in `threads` threads, where next() returns 0, 1, ... count - 1, then count.
void in_threads(int threads, std::size_t count,
                const std::function<void(std::function<std::size_t()>)>& work) {
  std::atomic<std::size_t> counter{0};
  const auto next = [&] { return std::min(counter.fetch_add(1), count); };
  in_team(int(std::clamp<std::size_t>(count, 1, std::size_t(std::max(threads, 1)))),
          [&](int) { work(next); });
}

}  // namespace

ThreeCenter::ThreeCenter(std::span<const int> atm, std::span<const int> bas, std::span<const double> env,
                         int orbital_shells, bool cartesian, const Functions& functions)
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
  if (!functions.int3c2e || !functions.int2e || !functions.make_optimizer || !functions.delete_optimizer)
    throw misuse("a libcint entry point is missing");
  first_.push_back(0);
  for (std::size_t shell = 0; shell < std::size_t(shells_); ++shell) {
    const int l = bas_[shell * shell_slots + angular_slot];
    const int size =
        (cartesian ? (l + 1) * (l + 2) / 2 : 2 * l + 1) * bas_[shell * shell_slots + contraction_slot];
    first_.push_back(first_.back() + size);
    auto& largest = int(shell) < orbital_shells_ ? largest_orbital_ : largest_auxiliary_;
    largest = std::max(largest, std::size_t(size));
  }
  void* optimizer = nullptr;  // of orbital shells: that of all shells takes more memory and gains nothing
  functions_.make_optimizer(&optimizer, atm_.data(), atoms_, bas_.data(), orbital_shells_, env_.data());
  optimizer_ = {optimizer, [release = functions.delete_optimizer](void* held) { release(&held); }};
  work3_ = work_size(functions_.int3c2e, false);
  work4_ = work_size(functions_.int2e, true);
}

std::size_t ThreeCenter::work_size(Libcint::Integral integral, bool four_centers) const {
  std::size_t most = 0;
  for (int i = 0; i < orbital_shells_; ++i)
    for (int k = four_centers ? i : orbital_shells_; k < (four_centers ? i + 1 : shells_); ++k) {
      int shells[4] = {i, i, k, k};
      most = std::max(most, std::size_t(integral(nullptr, nullptr, shells, atm_.data(), atoms_, bas_.data(),
                                                 shells_, env_.data(), nullptr, nullptr)));
    }
  return most;
}

std::vector<double> ThreeCenter::bounds(int threads) const {
  const auto count = std::size_t(orbital_shells_);
  std::vector<double> result(count * (count + 1) / 2);
  in_threads(threads, count, [&](const auto& next) {
    const std::size_t size = largest_orbital_ * largest_orbital_;
    std::vector<double> buffer(size * size), work(work4_);
    for (std::size_t i; (i = next()) < count;)
      for (std::size_t j = 0; j <= i; ++j)
        result[i * (i + 1) / 2 + j] = bound(int(i), int(j), buffer.data(), work.data());
  });
  return result;
}

double ThreeCenter::bound(int i, int j, double* buffer, double* work) const {
  int shells[4] = {i, j, i, j};
  if (functions_.int2e(buffer, nullptr, shells, atm_.data(), atoms_, bas_.data(), shells_, env_.data(),
                       nullptr, work) == 0)
    return 0.0;
  const std::size_t pairs = std::size_t(size(i)) * std::size_t(size(j));
  double largest = 0.0;
  for (std::size_t ij = 0; ij < pairs; ++ij) largest = std::max(largest, std::abs(buffer[ij * (pairs + 1)]));
  return std::sqrt(largest);
}

void ThreeCenter::check(std::span<const PairColumns> pairs) const {
  for (const auto& pair : pairs)
    if (pair.j < 0 || pair.i < pair.j || pair.i >= orbital_shells_ || pair.column < 0)
      throw misuse("shells " + std::to_string(pair.i) + ", " + std::to_string(pair.j) + " at column " +
                   std::to_string(pair.column) + " of " + std::to_string(orbital_shells_) + " shells");
}

void ThreeCenter::integrals(std::span<const PairColumns> pairs, int first, int last, double* out,
                            std::size_t stride, int threads) const {
  check(pairs);
  if (first < 0 || first > last || last > auxiliary_shells())
    throw misuse("auxiliary shells " + std::to_string(first) + " to " + std::to_string(last) + " of " +
                 std::to_string(auxiliary_shells()));
  in_threads(threads, pairs.size(), [&](const auto& next) {
    std::vector<double> buffer(largest_orbital_ * largest_orbital_ * largest_auxiliary_), work(work3_);
    for (std::size_t p; (p = next()) < pairs.size();)
      pair(pairs[p], first, last, out, stride, buffer.data(), work.data());
  });
}

void ThreeCenter::pair(const PairColumns& which, int first, int last, double* out, std::size_t stride,
                       double* buffer, double* work) const {
  const auto width = std::size_t(size(which.i)) * std::size_t(size(which.j));
  double* target = out + which.column;
  for (int k = first; k < last; ++k) {
    int shells[3] = {which.i, which.j, orbital_shells_ + k};
    const bool any = functions_.int3c2e(buffer, nullptr, shells, atm_.data(), atoms_, bas_.data(), shells_,
                                        env_.data(), optimizer_.get(), work) != 0;
    const int rows = first_auxiliary(k + 1) - first_auxiliary(k);
    for (int row = 0; row < rows; ++row, target += stride)
      if (any)
        std::copy_n(buffer + std::size_t(row) * width, width, target);
      else
        std::fill_n(target, width, 0.0);
  }
}

void ThreeCenter::expand(std::span<const PairColumns> pairs, const double* rows, std::size_t stride,
                         std::size_t count, double* out, int threads) const {
  check(pairs);
  const auto n = std::size_t(first(orbital_shells_));
  in_threads(threads, count, [&](const auto& next) {
    for (std::size_t row; (row = next()) < count;) {
      const double* values = rows + row * stride;
      double* matrix = out + row * n * n;
      for (const auto& pair : pairs) {
        const auto first_i = std::size_t(first(pair.i)), first_j = std::size_t(first(pair.j));
        const auto size_i = std::size_t(size(pair.i)), size_j = std::size_t(size(pair.j));
        const double* value = values + pair.column;
        for (std::size_t b = 0; b < size_j; ++b)
          for (std::size_t a = 0; a < size_i; ++a, ++value) {
            matrix[(first_j + b) * n + first_i + a] = *value;
            matrix[(first_i + a) * n + first_j + b] = *value;
          }
      }
    }
  });
}

void ThreeCenter::expand_images(std::span<const ImageColumns> images, const double* rows, std::size_t stride,
                                std::size_t count, std::span<const double> signs,
                                std::span<const double> characters, std::span<const std::int32_t> places,
                                std::size_t width, double* out, int threads) const {
  const auto n = std::size_t(first(orbital_shells_));
  if (places.size() != std::size_t(orbital_shells_)) throw misuse("a place of each shell is needed");
  for (int shell = 0; shell < orbital_shells_; ++shell)
    if (const auto place = places[std::size_t(shell)];
        place >= 0 && std::size_t(place) + std::size_t(size(shell)) > width)
      throw misuse("shell " + std::to_string(shell) + " has no place in " + std::to_string(width) +
                   " functions");
  if (signs.size() != characters.size() * n)
    throw misuse("a sign of each function for each operation is needed");
  for (const auto& image : images)
    if (image.i < 0 || image.j < 0 || image.i >= orbital_shells_ || image.j >= orbital_shells_ ||
        image.column < 0 || image.operation < 0 || std::size_t(image.operation) >= characters.size())
      throw misuse("image of shells " + std::to_string(image.i) + ", " + std::to_string(image.j) +
                   " after operation " + std::to_string(image.operation) + " at column " +
                   std::to_string(image.column) + ": there are " + std::to_string(orbital_shells_) +
                   " shells and " + std::to_string(characters.size()) + " operations");
  in_threads(threads, count, [&](const auto& next) {
    for (std::size_t row; (row = next()) < count;) {
      const double* values = rows + row * stride;
      double* matrix = out + row * n * width;
      for (const auto& image : images) {
        const auto first_i = std::size_t(first(image.i)), first_j = std::size_t(first(image.j));
        const auto size_i = std::size_t(size(image.i)), size_j = std::size_t(size(image.j));
        const auto operation = std::size_t(image.operation);
        const double* sign = signs.data() + operation * n;
        const double* value = values + image.column;
        const auto place_i = places[std::size_t(image.i)], place_j = places[std::size_t(image.j)];
        double* of_i = place_i < 0 ? nullptr : matrix + first_j * width + std::size_t(place_i);
        double* of_j = place_j < 0 ? nullptr : matrix + first_i * width + std::size_t(place_j);
        for (std::size_t b = 0; b < size_j; ++b, value += size_i) {
          const double sign_b = characters[operation] * sign[first_j + b];
          if (of_i)
            for (std::size_t a = 0; a < size_i; ++a)
              of_i[b * width + a] = sign_b * sign[first_i + a] * value[a];
          if (of_j)
            for (std::size_t a = 0; a < size_i; ++a)
              of_j[a * width + b] = sign_b * sign[first_i + a] * value[a];
        }
      }
    }
  });
}

}  // namespace outcore::chem
