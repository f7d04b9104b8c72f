#include "outcore/chem/slab.hpp"

#include <algorithm>
#include <cstring>

namespace outcore::chem {

void Slab::label(const Basis& basis, int i_shell, int j_shell, int k_shell) {
  i = i_shell, j = j_shell, k = k_shell;
  ni = basis.size(i), nj = basis.size(j), nk = basis.size(k);
  shells.clear();
}

void Slab::set_shells(const Basis& basis) {
  columns.clear();
  for (auto l : shells)
    for (int f = basis.first(l), end = f + basis.size(l); f < end; ++f) columns.push_back(f);
  row_length = (columns.size() + lane - 1) / lane * lane;
  if (storage.size() < rows() * row_length) storage.resize(rows() * row_length);
  for (std::size_t r = 0; r < rows(); ++r) std::fill(row(r) + columns.size(), row(r) + row_length, 0.0);
}

SlabMaker::SlabMaker(const Basis& basis, const Screening& screening)
    : basis_(basis), screening_(screening), work_(basis.work_size()) {
  const auto n = std::size_t(basis.largest_shell());
  quartet_.resize(n * n * n * n);
}

void SlabMaker::select(const Screening::Task& task, int k, const DensityBounds* density) {
  const double threshold = screening_.threshold();
  const double bra = screening_.bound(task.i, task.j);
  selected_.clear();
  // A Fock matrix element gets at most (ij|kl) times the largest of these densities; Coulomb terms count
  // twice.
  const double fixed =
      density ? std::max({2 * density->at(task.i, task.j), density->at(task.i, k), density->at(task.j, k)})
              : 0.0;
  for (auto l : screening_.partners(k)) {
    const double estimate = bra * screening_.bound(k, l);
    if (estimate * (density ? 2 * density->overall : 1.0) < threshold) break;
    if (k == task.i && l > task.j) continue;
    if (density) {
      const double largest =
          std::max({fixed, 2 * density->at(k, l), density->at(task.i, l), density->at(task.j, l)});
      if (estimate * largest < threshold) continue;
    }
    selected_.push_back(l);
  }
}

std::size_t SlabMaker::fill(const Screening::Task& task, int k, std::size_t from) {
  slab_.label(basis_, task.i, task.j, k);
  std::size_t columns = 0, to = from;
  for (; to < selected_.size(); ++to) {
    const auto more = std::size_t(basis_.size(selected_[to]));
    if (columns > 0 && (columns + more) * slab_.rows() > Slab::most_values) break;
    columns += more;
  }
  slab_.shells.assign(selected_.begin() + std::ptrdiff_t(from), selected_.begin() + std::ptrdiff_t(to));
  slab_.set_shells(basis_);

  std::size_t column = 0;
  bool any = false;
  for (auto l : slab_.shells) {
    const auto width = std::size_t(basis_.size(l));
    ++quartets_;
    integrals_ += slab_.rows() * width;
    // l runs fastest, as the columns do; the value is that of (ij|kl) by symmetry.
    const bool nonzero = basis_.integrals(l, k, task.j, task.i, quartet_.data(), work_.data());
    any |= nonzero;
    if (!nonzero) std::fill_n(quartet_.begin(), slab_.rows() * width, 0.0);
    double factor = 1.0;
    if (task.i == task.j) factor *= 0.5;
    if (k == l) factor *= 0.5;
    if (k == task.i && l == task.j) factor *= 0.5;
    const double* source = quartet_.data();
    for (std::size_t r = 0; r < slab_.rows(); ++r, source += width) {
      double* target = slab_.row(r) + column;
      for (std::size_t f = 0; f < width; ++f) target[f] = factor * source[f];
    }
    column += width;
  }
  if (!any) slab_.shells.clear();
  return to;
}

}  // namespace outcore::chem
