#include "chem/ci/correction.hpp"

#include <algorithm>
#include <cmath>

#include "chem/ci/correction_kernels.hpp"

namespace outcore::chem::ci {
namespace {

constexpr std::size_t block = 512;  // elements that stay in the cache together

void add(double* out, const double* in, double factor, std::size_t length) {
  correction_kernels().add_double(out, in, factor, length);
}
void add(double* out, const float* in, double factor, std::size_t length) {
  correction_kernels().add_float(out, in, factor, length);
}
void store(double* out, double* in, std::size_t length) {
  std::copy_n(in, length, out);
}
void store(float* out, double* in, std::size_t length) {
  correction_kernels().store_float(out, in, length);
}

/// Rows of one block, in double precision.
class Rows {
 public:
  explicit Rows(std::size_t count) : values_(count * block) {}
  [[nodiscard]] double* operator[](std::size_t row) { return values_.data() + row * block; }
  [[nodiscard]] double* zero(std::size_t row) {
    std::fill_n((*this)[row], block, 0.0);
    return (*this)[row];
  }
  template <class T>
  void take(std::size_t row, const T* in, std::size_t length) {
    add(zero(row), in, 1.0, length);
  }

 private:
  std::vector<double> values_;
};

template <class X, class W>
class Pass {
 public:
  Pass(const CorrectionTile<X, W>& tile, double* sums)
      : tile_(tile),
        sums_(sums),
        k_(tile.states.size()),
        q_(tile.vectors.size()),
        basis_(k_ + tile.kept + tile.active.size()),
        multiplied_(k_ + tile.kept),
        rows_(basis_ + multiplied_ + 1) {}

  void run() {
    const bool mirrored = tile_.parity != 0;
    for (std::size_t at = 0; at < tile_.elements; at += block) {
      const std::size_t length = std::min(block, tile_.elements - at);
      update(at, length);
      if (!mirrored) dots(length);
    }
    if (!mirrored) return;
    mirror();
    for (std::size_t at = 0; at < tile_.elements; at += block) {
      const std::size_t length = std::min(block, tile_.elements - at);
      for (std::size_t i = 0; i < k_; ++i) {
        rows_.take(i, tile_.states[i] + at, length);
        rows_.take(basis_ + i, tile_.h_states[i] + at, length);
      }
      for (std::size_t i = 0; i < tile_.kept; ++i) {
        rows_.take(k_ + i, tile_.vectors[i] + at, length);
        rows_.take(basis_ + k_ + i, tile_.h_vectors[i] + at, length);
      }
      for (std::size_t i = 0; i < tile_.active.size(); ++i)
        rows_.take(multiplied_ + i, tile_.corrections[i] + at, length);
      dots(length);
    }
  }

 private:
  /// Rows from 0 to basis_ are x, w, t; the following rows are H x, H w.
  void update(std::size_t at, std::size_t length) {
    combine(at, length, tile_.states, tile_.vectors, 0);
    combine(at, length, tile_.h_states, tile_.h_vectors, basis_);
    for (std::size_t i = 0; i < k_; ++i) {
      store(tile_.states[i] + at, rows_[i], length);
      store(tile_.h_states[i] + at, rows_[basis_ + i], length);
    }
    if (tile_.collapses)
      for (std::size_t i = 0; i < tile_.kept; ++i) {
        store(tile_.vectors[i] + at, rows_[k_ + i], length);
        store(tile_.h_vectors[i] + at, rows_[basis_ + k_ + i], length);
      }
    double* unused = rows_[basis_ + multiplied_];
    std::size_t next = 0;
    for (std::size_t i = 0; i < k_; ++i) {
      const bool active = next < tile_.active.size() && tile_.active[next] == int(i);
      double* t = active ? rows_[multiplied_ + next] : unused;
      correction_kernels().correct(t, rows_[i], rows_[basis_ + i], tile_.diagonal + at, tile_.energies[i],
                                   tile_.smallest, length, sums_of_state(i));
      if (active) store(tile_.corrections[next++] + at, t, length);
    }
  }

  void combine(std::size_t at, std::size_t length, const std::vector<X*>& states,
               const std::vector<W*>& vectors, std::size_t first) {
    for (std::size_t i = 0; i < k_; ++i) {
      const double* factors = tile_.to_states + i * (k_ + q_);
      double* out = rows_.zero(first + i);
      for (std::size_t j = 0; j < k_; ++j)
        if (factors[j] != 0) add(out, states[j] + at, factors[j], length);
      for (std::size_t j = 0; j < q_; ++j)
        if (factors[k_ + j] != 0) add(out, vectors[j] + at, factors[k_ + j], length);
    }
    for (std::size_t i = 0; i < tile_.kept; ++i) {
      double* out = rows_.zero(first + k_ + i);
      if (!tile_.collapses)
        add(out, vectors[i] + at, 1.0, length);
      else
        for (std::size_t j = 0; j < q_; ++j) add(out, vectors[j] + at, tile_.to_vectors[i * q_ + j], length);
    }
  }

  void dots(std::size_t length) {
    const std::size_t width = basis_ + multiplied_;
    for (std::size_t i = 0; i < basis_; ++i)
      for (std::size_t j = i; j < width; ++j) {
        const double product = correction_kernels().dot(rows_[i], rows_[j], length);
        sums_[i * width + j] += product;
        if (j > i && j < basis_) sums_[j * width + i] += product;  // <b_j|b_i>
      }
  }

  [[nodiscard]] double* sums_of_state(std::size_t i) {
    return sums_ + basis_ * (basis_ + multiplied_) + 2 * i;
  }

  void mirror() {
    for (X* each : tile_.states) mirror(each);
    for (X* each : tile_.h_states) mirror(each);
    if (tile_.collapses)
      for (std::size_t i = 0; i < tile_.kept; ++i) {
        mirror(tile_.vectors[i]);
        mirror(tile_.h_vectors[i]);
      }
    for (W* each : tile_.corrections) mirror(each);
  }

  template <class T>
  void mirror(T* values) {
    const std::size_t side = side_of_square(tile_.elements);
    const T sign = T(tile_.parity);
    for (std::size_t r = 0; r < side; ++r) {
      if (tile_.parity < 0) values[r * side + r] = 0;
      for (std::size_t c = 0; c < r; ++c) values[c * side + r] = sign * values[r * side + c];
    }
  }

  const CorrectionTile<X, W>& tile_;
  double* sums_;
  std::size_t k_, q_, basis_, multiplied_;
  Rows rows_;
};

}  // namespace

std::size_t side_of_square(std::size_t elements) noexcept {
  const auto side = std::size_t(std::llround(std::sqrt(double(elements))));
  return side * side == elements ? side : 0;
}

template <class X, class W>
void correct(const CorrectionTile<X, W>& tile, double* sums) {
  Pass<X, W>(tile, sums).run();
}

template <class A, class B>
void add_dots(std::span<const A* const> a, std::span<const B* const> b, std::size_t elements, double* sums) {
  Rows rows(a.size() + b.size());
  for (std::size_t at = 0; at < elements; at += block) {
    const std::size_t length = std::min(block, elements - at);
    for (std::size_t i = 0; i < a.size(); ++i) rows.take(i, a[i] + at, length);
    for (std::size_t j = 0; j < b.size(); ++j) rows.take(a.size() + j, b[j] + at, length);
    for (std::size_t i = 0; i < a.size(); ++i)
      for (std::size_t j = 0; j < b.size(); ++j)
        sums[i * b.size() + j] += correction_kernels().dot(rows[i], rows[a.size() + j], length);
  }
}

double round_to(double* values, double* added, double step, std::size_t elements) {
  return correction_kernels().round_to(values, added, step, elements);
}

template void correct(const CorrectionTile<double, double>&, double*);
template void correct(const CorrectionTile<double, float>&, double*);
template void correct(const CorrectionTile<float, float>&, double*);
template void add_dots(std::span<const double* const>, std::span<const double* const>, std::size_t, double*);
template void add_dots(std::span<const double* const>, std::span<const float* const>, std::size_t, double*);
template void add_dots(std::span<const float* const>, std::span<const double* const>, std::size_t, double*);
template void add_dots(std::span<const float* const>, std::span<const float* const>, std::size_t, double*);

}  // namespace outcore::chem::ci
