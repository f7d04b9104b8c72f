// Bodies of the inner loops, for one instruction set: see base/instruction_sets.hpp, also for what may not be
// used.

#include "chem/ci/run_kernels.hpp"

namespace outcore::chem::ci {
namespace {

using Size = std::size_t;

// A vector without alignment. The type must be written out: auto would drop the alignment.
template <class Real, int count>
struct Loose {
  using Type [[gnu::vector_size(count * sizeof(Real)), gnu::aligned(sizeof(Real)), gnu::may_alias]] = Real;
};
template <class Real, int count>
struct Packed {
  using Type [[gnu::vector_size(count * sizeof(Real))]] = Real;
};

// Tiles of side * side elements are transposed in registers. Runs are short: longer sides would be filled
// badly.
template <class Real>
constexpr int lane = OUTCORE_LANE * int(sizeof(double) / sizeof(Real));
template <class Real>
constexpr int side = lane<Real> < 8 ? lane<Real> : 8;
template <class Real>
using Vector = typename Packed<Real, side<Real>>::Type;
template <class Real>
using LooseVector = typename Loose<Real, side<Real>>::Type;

template <class Real>
inline Vector<Real> load(const Real* from) {
  return *reinterpret_cast<const LooseVector<Real>*>(from);
}
template <class Real>
inline void store(Real* to, Vector<Real> value) {
  *reinterpret_cast<LooseVector<Real>*>(to) = value;
}

template <int... I>
struct Places {};
template <int count, int... I>
struct PlacesTo : PlacesTo<count - 1, count - 1, I...> {};
template <int... I>
struct PlacesTo<0, I...> {
  using Type = Places<I...>;
};

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define OUTCORE_MIX(a, b, first) \
  __builtin_shufflevector(a, b, (I % 2 ? count + first + I / 2 : first + I / 2)...)
#endif
#endif
#ifndef OUTCORE_MIX
#define OUTCORE_MIX(a, b, first) (V{(I % 2 ? b[first + I / 2] : a[first + I / 2])...})
#endif

/// Elements of the lower, or upper, halves of two vectors by turns.
template <class V, int... I>
[[gnu::always_inline]] inline V low_halves(const V& a, const V& b, Places<I...>) {
  [[maybe_unused]] constexpr int count = int(sizeof...(I));
  return OUTCORE_MIX(a, b, 0);
}
template <class V, int... I>
[[gnu::always_inline]] inline V high_halves(const V& a, const V& b, Places<I...>) {
  constexpr int count = int(sizeof...(I));
  return OUTCORE_MIX(a, b, count / 2);
}

/// As many vectors as each has elements become their transpose: each round mixes the halves.
template <class Real>
[[gnu::always_inline]] inline void transpose_tile(Vector<Real> (&v)[side<Real>]) {
  constexpr int n = side<Real>;
  constexpr typename PlacesTo<n>::Type places;
#pragma GCC unroll 3
  for (int round = 1; round < n; round *= 2) {
    Vector<Real> next[n];
#pragma GCC unroll 8
    for (int i = 0; i < n / 2; ++i) {
      next[2 * i] = low_halves(v[i], v[i + n / 2], places);
      next[2 * i + 1] = high_halves(v[i], v[i + n / 2], places);
    }
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) v[i] = next[i];
  }
}

// y[0], ..., y[length - 1] += factor * x[..], by the widest registers that fit, and not beyond the end: the
// neighbours are soon read, and a processor waits if a wider store has just written them.
template <class Real, int length, int width = side<Real>>
[[gnu::always_inline]] inline void add_run(Real* y, const Real* x, Real factor) {
  if constexpr (width == 1) {
#pragma GCC unroll 8
    for (int c = 0; c < length; ++c) y[c] += factor * x[c];
  } else if constexpr (length >= width) {
    using Part = typename Loose<Real, width>::Type;
    *reinterpret_cast<Part*>(y) += factor * *reinterpret_cast<const Part*>(x);
    add_run<Real, length - width, width>(y + width, x + width, factor);
  } else if constexpr (length > 0) {
    add_run<Real, length, width / 2>(y, x, factor);
  }
}

template <class Real>
inline Real sign_of(Run run) {
  constexpr Real signs[2] = {1, -1};
  return signs[run >> 31];
}

constexpr int longest = 16;  // of the lengths of runs that are known at compile time

template <class Real, int known>
void gather_runs(Real* lines, Size stride, const Real* x, const Run* table, Size table_stride, Size holes,
                 int orbitals, int any_length) {
  constexpr int n = side<Real>;
  const int length = known ? known : any_length;
  for (Size k = 0; k < holes; k += n) {
    const int count = holes - k < n ? int(holes - k) : n;
    for (int s = 0; s < orbitals; ++s) {
      const Run* runs = table + k * table_stride + Size(s);
      const Real* from[n];
      Real signs[n];
#pragma GCC unroll 8
      for (int i = 0; i < n; ++i) {
        const Run run = runs[Size(i < count ? i : 0) * table_stride];
        from[i] = x + Size(run & ~negative) * Size(length);
        signs[i] = sign_of<Real>(run);
      }
      Real* to = lines + Size(s) * Size(length) * stride + k;
#pragma GCC unroll 2
      for (int c = 0; c < length; c += n) {
        Vector<Real> tile[n];
#pragma GCC unroll 8
        for (int i = 0; i < n; ++i) tile[i] = signs[i] * load(from[i] + c);
        transpose_tile<Real>(tile);
#pragma GCC unroll 8
        for (int i = 0; i < n; ++i)
          if (c + i < length) store(to + Size(c + i) * stride, tile[i]);
      }
    }
  }
}

template <class Real, int known>
void scatter_runs(Real* y, const Real* lines, Size stride, const Run* table, Size table_stride, Size holes,
                  int orbitals, int any_length) {
  constexpr int n = side<Real>;
  constexpr int tiles = known ? (known + n - 1) / n : 1;
  const int length = known ? known : any_length;
  for (Size k = 0; k < holes; k += n) {
    const int count = holes - k < n ? int(holes - k) : n;
    for (int s = 0; s < orbitals; ++s) {
      const Run* runs = table + k * table_stride + Size(s);
      const Real* from = lines + Size(s) * Size(length) * stride + k;
      for (int c = 0; c < length; c += tiles * n) {
        alignas(64) Real turned[n][tiles * n];
#pragma GCC unroll 4
        for (int t = 0; t < tiles; ++t) {
          Vector<Real> tile[n];
#pragma GCC unroll 8
          for (int i = 0; i < n; ++i)
            tile[i] = c + t * n + i < length ? load(from + Size(c + t * n + i) * stride) : Vector<Real>{};
          transpose_tile<Real>(tile);
#pragma GCC unroll 8
          for (int i = 0; i < n; ++i) store(&turned[i][t * n], tile[i]);
        }
        for (int i = 0; i < count; ++i) {
          const Run run = runs[Size(i) * table_stride];
          Real* to = y + Size(run & ~negative) * Size(length) + c;
          const Real sign = sign_of<Real>(run);
          if constexpr (known > 0) {
            add_run<Real, known>(to, turned[i], sign);
          } else {
            if (length - c >= n)
              add_run<Real, n>(to, turned[i], sign);
            else
              for (int each = 0; each < length - c; ++each) to[each] += sign * turned[i][each];
          }
        }
      }
    }
  }
}

template <class Real, int length>
struct OfLength {
  static constexpr int next = length == longest ? 0 : length + 1;
  static void gather(Real* lines, Size stride, const Real* x, const Run* table, Size table_stride, Size holes,
                     int orbitals, int wanted) {
    if (wanted == length || length == 0)
      gather_runs<Real, length>(lines, stride, x, table, table_stride, holes, orbitals, wanted);
    else
      OfLength<Real, next>::gather(lines, stride, x, table, table_stride, holes, orbitals, wanted);
  }
  static void scatter(Real* y, const Real* lines, Size stride, const Run* table, Size table_stride,
                      Size holes, int orbitals, int wanted) {
    if (wanted == length || length == 0)
      scatter_runs<Real, length>(y, lines, stride, table, table_stride, holes, orbitals, wanted);
    else
      OfLength<Real, next>::scatter(y, lines, stride, table, table_stride, holes, orbitals, wanted);
  }
};

template <class Real>
void combine(const Real* a, const Real* b, Real* plus, Real* minus, Size count) {
  if (!minus)
#pragma GCC ivdep
    for (Size i = 0; i < count; ++i) plus[i] = a[i] + b[i];
  else
#pragma GCC ivdep
    for (Size i = 0; i < count; ++i) {
      const Real left = a[i], right = b[i];
      plus[i] = left + right;
      minus[i] = left - right;
    }
}

template <class Real>
void interleave(Real* x, const Real* const* rows, const Real* signs, int length, Size columns) {
  constexpr int n = side<Real>;
  constexpr int most = 64 / n;  // tiles of the longest run
  Size b = 0;
  for (; b + n <= columns; b += n) {
    Vector<Real> tiles[most][n];
    for (int c = 0, t = 0; c < length; c += n, ++t) {
#pragma GCC unroll 8
      for (int i = 0; i < n; ++i)
        tiles[t][i] = c + i < length && rows[c + i] ? signs[c + i] * load(rows[c + i] + b) : Vector<Real>{};
      transpose_tile<Real>(tiles[t]);
    }
    // The elements of a register beyond its run are overwritten by the next run.
    for (int i = 0; i < n; ++i)
      for (int c = 0, t = 0; c < length; c += n, ++t)
        store(x + (b + Size(i)) * Size(length) + c, tiles[t][i]);
  }
  for (; b < columns; ++b)
    for (int c = 0; c < length; ++c)
      x[b * Size(length) + Size(c)] = rows[c] ? signs[c] * rows[c][b] : Real(0);
}

template <class Real>
void add_interleaved(Real* const* rows, const Real* signs, const Real* y, int length, Size columns) {
  constexpr int n = side<Real>;
  Size b = 0;
  for (; b + n <= columns; b += n)
    for (int c = 0; c < length; c += n) {
      Vector<Real> tile[n];
#pragma GCC unroll 8
      for (int i = 0; i < n; ++i) tile[i] = load(y + (b + Size(i)) * Size(length) + c);
      transpose_tile<Real>(tile);
#pragma GCC unroll 8
      for (int i = 0; i < n; ++i)
        if (c + i < length && rows[c + i])
          store(rows[c + i] + b, load<Real>(rows[c + i] + b) + signs[c + i] * tile[i]);
    }
  for (; b < columns; ++b)
    for (int c = 0; c < length; ++c)
      if (rows[c]) rows[c][b] += signs[c] * y[b * Size(length) + Size(c)];
}

template <class Real, bool adds>
void transpose(Real* to, Size to_stride, const Real* from, Size from_stride, Size rows, Size columns) {
  constexpr Size n = side<Real>;
  const auto element = [&](Size i, Size j) {
    Real& target = to[j * to_stride + i];
    const Real value = from[i * from_stride + j];
    target = adds ? target + value : value;
  };
  const Size whole_rows = rows / n * n, whole_columns = columns / n * n;
  for (Size i = 0; i < whole_rows; i += n) {
    for (Size j = 0; j < whole_columns; j += n) {
      Vector<Real> tile[n];
#pragma GCC unroll 8
      for (Size k = 0; k < n; ++k) tile[k] = load(from + (i + k) * from_stride + j);
      transpose_tile<Real>(tile);
#pragma GCC unroll 8
      for (Size k = 0; k < n; ++k) {
        Real* target = to + (j + k) * to_stride + i;
        store(target, adds ? load<Real>(target) + tile[k] : tile[k]);
      }
    }
    for (Size k = 0; k < n; ++k)
      for (Size j = whole_columns; j < columns; ++j) element(i + k, j);
  }
  for (Size i = whole_rows; i < rows; ++i)
    for (Size j = 0; j < columns; ++j) element(i, j);
}

template <class Real>
void select(Real* out, const Real* row, const std::int32_t* at, const Real* factors, int count) {
#pragma GCC ivdep
  for (int i = 0; i < count; ++i) out[i] = factors[i] * row[at[i]];
}

template <class Real>
void add(Real* to, const Real* from, Size count) {
#pragma GCC ivdep
  for (Size i = 0; i < count; ++i) to[i] += from[i];
}

template <class Real>
constexpr RunLoops<Real> loops = {OfLength<Real, 1>::gather,
                                  OfLength<Real, 1>::scatter,
                                  combine<Real>,
                                  interleave<Real>,
                                  add_interleaved<Real>,
                                  transpose<Real, false>,
                                  transpose<Real, true>,
                                  select<Real>,
                                  add<Real>};

}  // namespace

const RunKernels OUTCORE_VARIANT(run_kernels) = {loops<double>, loops<float>};

}  // namespace outcore::chem::ci
