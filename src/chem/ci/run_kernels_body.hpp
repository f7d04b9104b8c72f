// Bodies of the inner loops, for one instruction set: see base/instruction_sets.hpp, also for what may not be
// used.

#include "chem/ci/run_kernels.hpp"

namespace outcore::chem::ci {
namespace {

template <class Real, int count>
struct Lanes {
  // May be anywhere. The type must be written out: auto would drop what it says of alignment.
  using Type [[gnu::vector_size(count * sizeof(Real)), gnu::aligned(sizeof(Real)), gnu::may_alias]] = Real;
};

template <class Real>
constexpr int lane = OUTCORE_LANE * int(sizeof(double) / sizeof(Real));

template <class Real, int count>
inline void copy_lanes(Real* to, const Real* from, Real factor) {
  using Lane = typename Lanes<Real, count>::Type;
  *reinterpret_cast<Lane*>(to) = factor * *reinterpret_cast<const Lane*>(from);
}
template <class Real, int count>
inline void add_lanes(Real* to, const Real* from, Real factor) {
  using Lane = typename Lanes<Real, count>::Type;
  *reinterpret_cast<Lane*>(to) += factor * *reinterpret_cast<const Lane*>(from);
}

// Runs of a length that is known at compile time, by the widest registers that fit.
template <class Real, int length, int width>
[[gnu::always_inline]] inline void copy_run(Real* to, const Real* from, Real factor) {
  if constexpr (length > 0 && width == 1) {
    to[0] = factor * from[0];
    copy_run<Real, length - 1, 1>(to + 1, from + 1, factor);
  } else if constexpr (length >= width && length > 0) {
    copy_lanes<Real, width>(to, from, factor);
    copy_run<Real, length - width, width>(to + width, from + width, factor);
  } else if constexpr (length > 0) {
    copy_run<Real, length, width / 2>(to, from, factor);
  }
}
template <class Real, int length, int width>
[[gnu::always_inline]] inline void add_run(Real* to, const Real* from, Real factor) {
  if constexpr (length > 0 && width == 1) {
    to[0] += factor * from[0];
    add_run<Real, length - 1, 1>(to + 1, from + 1, factor);
  } else if constexpr (length >= width && length > 0) {
    add_lanes<Real, width>(to, from, factor);
    add_run<Real, length - width, width>(to + width, from + width, factor);
  } else if constexpr (length > 0) {
    add_run<Real, length, width / 2>(to, from, factor);
  }
}

template <class Real>
inline Real sign_of(Run run) {
  constexpr Real signs[2] = {1, -1};
  return signs[run >> 31];
}

constexpr int longest = 16;  // of the lengths that are known at compile time

template <class Real, int length>
void gather_runs(Real* lines, std::size_t line_stride, const Real* x, const Run* table,
                 std::size_t table_stride, std::size_t holes, int orbitals, int any_length) {
  for (std::size_t k = 0; k < holes; ++k, lines += line_stride, table += table_stride)
    for (int s = 0; s < orbitals; ++s) {
      const Real sign = sign_of<Real>(table[s]);
      if constexpr (length > 0) {
        copy_run<Real, length, lane<Real>>(lines + s * length, x + std::size_t(table[s] & ~negative) * length,
                                           sign);
      } else {
        // The last register begins where it ends with the run.
        Real* to = lines + std::size_t(s) * std::size_t(any_length);
        const Real* from = x + std::size_t(table[s] & ~negative) * std::size_t(any_length);
        constexpr int width = lane<Real> < longest ? lane<Real> : longest;
        for (int c = 0; c + width <= any_length; c += width) copy_lanes<Real, width>(to + c, from + c, sign);
        copy_lanes<Real, width>(to + any_length - width, from + any_length - width, sign);
      }
    }
}

template <class Real, int length>
void scatter_runs(Real* y, const Real* lines, std::size_t line_stride, const Run* table,
                  std::size_t table_stride, std::size_t holes, int orbitals, int any_length) {
  for (std::size_t k = 0; k < holes; ++k, lines += line_stride, table += table_stride)
    for (int s = 0; s < orbitals; ++s) {
      const Real sign = sign_of<Real>(table[s]);
      if constexpr (length > 0) {
        add_run<Real, length, lane<Real>>(y + std::size_t(table[s] & ~negative) * length, lines + s * length,
                                          sign);
      } else {
        // The last register begins where it ends with the run; its sum is formed before parts of it are.
        Real* to = y + std::size_t(table[s] & ~negative) * std::size_t(any_length);
        const Real* from = lines + std::size_t(s) * std::size_t(any_length);
        constexpr int width = lane<Real> < longest ? lane<Real> : longest;
        using Lane = typename Lanes<Real, width>::Type;
        const int last = any_length - width;
        const Lane end =
            *reinterpret_cast<const Lane*>(to + last) + sign * *reinterpret_cast<const Lane*>(from + last);
        for (int c = 0; c < last; c += width) add_lanes<Real, width>(to + c, from + c, sign);
        *reinterpret_cast<Lane*>(to + last) = end;
      }
    }
}

template <class Real, int length>
struct Choice {
  static void gather(Real* lines, std::size_t line_stride, const Real* x, const Run* table,
                     std::size_t table_stride, std::size_t holes, int orbitals, int wanted) {
    if (wanted == length || length == 0)
      return gather_runs<Real, length>(lines, line_stride, x, table, table_stride, holes, orbitals, wanted);
    if constexpr (length > 0)
      Choice<Real, length == longest ? 0 : length + 1>::gather(lines, line_stride, x, table, table_stride,
                                                               holes, orbitals, wanted);
  }
  static void scatter(Real* y, const Real* lines, std::size_t line_stride, const Run* table,
                      std::size_t table_stride, std::size_t holes, int orbitals, int wanted) {
    if (wanted == length || length == 0)
      return scatter_runs<Real, length>(y, lines, line_stride, table, table_stride, holes, orbitals, wanted);
    if constexpr (length > 0)
      Choice<Real, length == longest ? 0 : length + 1>::scatter(y, lines, line_stride, table, table_stride,
                                                                holes, orbitals, wanted);
  }
};

template <class Real>
void combine(const Real* line, const std::int32_t* left, const std::int32_t* right, int n_minus, int n_plus,
             bool in_order, Real* plus, Real* minus) {
  if (in_order)
#pragma GCC ivdep
    for (int c = 0; c < n_minus; ++c) {
      const Real a = line[c], b = line[right[c]];
      plus[c] = a + b;
      minus[c] = a - b;
    }
  else
#pragma GCC ivdep
    for (int c = 0; c < n_minus; ++c) {
      const Real a = line[left[c]], b = line[right[c]];
      plus[c] = a + b;
      minus[c] = a - b;
    }
  for (int c = n_minus; c < n_plus; ++c) plus[c] = 2 * line[left[c]];
}

template <class Real>
void split(const Real* plus, const Real* minus, const std::int32_t* left, const std::int32_t* right,
           int n_minus, int n_plus, bool in_order, Real* line) {
  if (in_order)
#pragma GCC ivdep
    for (int c = 0; c < n_minus; ++c) line[c] = plus[c] + minus[c];
  else
#pragma GCC ivdep
    for (int c = 0; c < n_minus; ++c) line[left[c]] = plus[c] + minus[c];
#pragma GCC ivdep
  for (int c = 0; c < n_minus; ++c) line[right[c]] = plus[c] - minus[c];
  for (int c = n_minus; c < n_plus; ++c) line[left[c]] = plus[c];
}

template <class Real>
void interleave(Real* x, const Real* const* rows, const Real* signs, int length, std::size_t columns) {
  constexpr std::size_t block = 256;  // columns of all rows that stay in the first cache
  for (std::size_t b0 = 0; b0 < columns; b0 += block) {
    const std::size_t b1 = b0 + block < columns ? b0 + block : columns;
    for (int c = 0; c < length; ++c) {
      const Real* row = rows[c];
      const Real sign = signs[c];
      if (!row)
        for (std::size_t b = b0; b < b1; ++b) x[b * std::size_t(length) + std::size_t(c)] = 0;
      else
        for (std::size_t b = b0; b < b1; ++b) x[b * std::size_t(length) + std::size_t(c)] = sign * row[b];
    }
  }
}

template <class Real>
void add_strided(Real* row, const Real* y, int length, Real sign, std::size_t columns) {
  for (std::size_t b = 0; b < columns; ++b) row[b] += sign * y[b * std::size_t(length)];
}

template <class Real>
void select(Real* out, const Real* row, const std::int32_t* at, const Real* factor, int count) {
#pragma GCC ivdep
  for (int i = 0; i < count; ++i) out[i] = factor[i] * row[at[i]];
}

template <class Real>
void add(Real* to, const Real* from, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
}

}  // namespace

const RunKernels OUTCORE_VARIANT(run_kernels) = {
    {Choice<double, 1>::gather, Choice<double, 1>::scatter, combine<double>, split<double>,
     interleave<double>, add_strided<double>, select<double>, add<double>},
    {Choice<float, 1>::gather, Choice<float, 1>::scatter, combine<float>, split<float>, interleave<float>,
     add_strided<float>, select<float>, add<float>}};

}  // namespace outcore::chem::ci
