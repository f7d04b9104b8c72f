// Bodies of the kernels, for one instruction set: see base/instruction_sets.hpp, also for what may not be
// used.

#include "chem/ci/correction_kernels.hpp"

namespace outcore::chem::ci {
namespace {

constexpr std::size_t lanes = 16;  // of a sum: the same for all instruction sets

void add_double(double* out, const double* in, double factor, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) out[i] += factor * in[i];
}

void add_float(double* out, const float* in, double factor, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) out[i] += factor * double(in[i]);
}

void store_float(float* out, double* in, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) {
    out[i] = float(in[i]);
    in[i] = double(out[i]);
  }
}

inline double total(const double* sums) {
  double all = 0;
  for (std::size_t l = 0; l < lanes; ++l) all += sums[l];
  return all;
}

double dot(const double* a, const double* b, std::size_t length) {
  double sums[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= length; i += lanes)
    for (std::size_t l = 0; l < lanes; ++l) sums[l] += a[i + l] * b[i + l];
  for (std::size_t l = 0; i < length; ++i, ++l) sums[l] += a[i] * b[i];
  return total(sums);
}

void correct(double* t, const double* x, const double* s, const double* d, double energy, double smallest,
             std::size_t length, double* sums) {
  double residual[lanes] = {}, above[lanes] = {};
  const auto one = [&](std::size_t i, std::size_t l) {
    const double r = s[i] - energy * x[i];
    const double gap = energy - d[i];
    const double size = gap < 0 ? -gap : gap;
    t[i] = r / (size >= smallest ? gap : gap < 0 ? -smallest : smallest);
    residual[l] += r * r;
    above[l] -= gap * x[i] * x[i];
  };
  std::size_t i = 0;
  for (; i + lanes <= length; i += lanes)
    for (std::size_t l = 0; l < lanes; ++l) one(i + l, l);
  for (std::size_t l = 0; i < length; ++i, ++l) one(i, l);
  sums[0] += total(residual);
  sums[1] += total(above);
}

double round_to(double* values, double* added, double step, std::size_t length) {
  constexpr double whole = 0x1p52;  // numbers of this size and above have no fraction
  double squares[lanes] = {};
  const double inverse = 1 / step;
  const auto one = [&](std::size_t i, std::size_t l) {
    const double before = values[i], steps = before * inverse;
    const double size = steps < 0 ? -steps : steps, away = steps < 0 ? -whole : whole;
    const double after = (size < whole ? (steps + away) - away : steps) * step;
    const double change = after - before;
    values[i] = after;
    if (added) added[i] = change;
    squares[l] += change * change;
  };
  std::size_t i = 0;
  for (; i + lanes <= length; i += lanes)
    for (std::size_t l = 0; l < lanes; ++l) one(i + l, l);
  for (std::size_t l = 0; i < length; ++i, ++l) one(i, l);
  return total(squares);
}

}  // namespace

const CorrectionKernels OUTCORE_VARIANT(correction_kernels) = {add_double, add_float, store_float,
                                                               dot,        correct,   round_to};

}  // namespace outcore::chem::ci
