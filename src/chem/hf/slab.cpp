#include "chem/hf/slab.hpp"

#include <algorithm>
#include <cstring>

namespace outcore::chem {

void Slab::label(const Basis& basis, int i_shell, int j_shell, int k_shell) {
  i = i_shell, j = j_shell, k = k_shell;
  ni = basis.size(i), nj = basis.size(j), nk = basis.size(k);
  first_pair = 0, pairs = ni * nj;
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

void Slab::set_part(const Slab& whole, int from, int count) {
  const auto first_row = std::size_t(from) * std::size_t(whole.nk);
  i = whole.i, j = whole.j, k = whole.k;
  ni = whole.ni, nj = whole.nj, nk = whole.nk;
  bound = whole.bound, small = whole.small;
  first_pair = whole.first_pair + from, pairs = count;
  shells = whole.shells, columns = whole.columns, weights = whole.weights;
  row_length = whole.row_length;
  storage.assign(whole.row(first_row), whole.row(first_row) + rows() * row_length);
}

SlabMaker::SlabMaker(const Basis& basis, const Screening& screening)
    : basis_(basis), screening_(screening), work_(basis.work_size()) {
  const auto n = std::size_t(basis.largest_shell());
  quartet_.resize(n * n * n * n);
}

void SlabMaker::select(const Screening::Task& task, int k, const Selection& selection) {
  const auto* density = selection.density;
  selected_.clear();
  // A Fock matrix element gets at most (ij|kl) times the largest of these densities; Coulomb terms count
  // twice.
  const double fixed =
      density ? std::max({2 * density->at(task.i, task.j), density->at(task.i, k), density->at(task.j, k)})
              : 0.0;
  const double least = density ? density->threshold / (2 * std::max(density->overall, 1e-300)) : 0.0;
  screening_.quartets(task.i, task.j, k, rare_, least, [&](const Screening::Quartet& quartet, double bound) {
    const int l = quartet.l;
    const double of_all = quartet.copies * bound;
    if (selection.at_random && quartet.weight == 1) return;
    if (selection.quartets != Selection::Quartets::all &&
        selection.rule->keeps(task.i, task.j, k, l, of_all) !=
            (selection.quartets == Selection::Quartets::kept))
      return;
    double min_bound = 0;
    if (density) {
      const double largest =
          std::max({fixed, 2 * density->at(k, l), density->at(task.i, l), density->at(task.j, l)});
      if (bound * largest < density->threshold) return;
      min_bound = density->threshold / largest;
    }
    selected_.push_back({quartet, of_all, min_bound});
  });
  if (selection.small_below > 0)
    std::ranges::stable_partition(selected_,
                                  [&](const Selected& each) { return each.bound >= selection.small_below; });
}

std::size_t SlabMaker::count(const Screening::Task& task, const Selection& selection) {
  std::size_t found = 0;
  rare_ = screening_.rare(task.i, task.j);
  for (int k = 0; k <= task.i; ++k) {
    select(task, k, selection);
    found += selected_.size();
  }
  return found;
}

const Slab& SlabMaker::make(const Screening::Task& task, int k,
                            std::span<const Screening::Quartet> quartets) {
  selected_.clear();
  for (const auto& each : quartets) {
    const double bound = each.weight * screening_.bound(task.i, task.j) * screening_.bound(k, each.l);
    selected_.push_back({each, each.copies * bound, 0.0});
  }
  fill(task, k, 0, {});
  return slab_;
}

std::size_t SlabMaker::fill(const Screening::Task& task, int k, std::size_t from,
                            const Selection& selection) {
  slab_.label(basis_, task.i, task.j, k);
  slab_.small = selected_[from].bound < selection.small_below;
  std::size_t columns = 0, to = from;
  for (; to < selected_.size(); ++to) {
    const auto more = std::size_t(basis_.size(selected_[to].quartet.l));
    if (columns > 0 && (columns + more) * slab_.rows() > max_values_) break;
    if ((selected_[to].bound < selection.small_below) != slab_.small) break;
    columns += more;
  }
  slab_.bound = 0;
  slab_.weights.clear();
  for (std::size_t at = from; at < to; ++at) {
    slab_.bound = std::max(slab_.bound, selected_[at].bound);
    slab_.shells.push_back(selected_[at].quartet.l);
    slab_.weights.push_back(selected_[at].quartet.weight);
  }
  slab_.set_shells(basis_);

  std::size_t column = 0;
  bool any = false;
  for (std::size_t at = from; at < to; ++at) {
    any |= fill_columns(task, k, selected_[at], column);
    column += std::size_t(basis_.size(selected_[at].quartet.l));
  }
  if (!any) slab_.shells.clear();
  return to;
}

bool SlabMaker::fill_columns(const Screening::Task& task, int k, const Selected& selected,
                             std::size_t column) {
  const int l = selected.quartet.l;
  double factor = selected.quartet.copies * selected.quartet.weight;
  if (task.i == task.j) factor *= 0.5;
  if (k == l) factor *= 0.5;
  if (k == task.i && l == task.j) factor *= 0.5;
  bool any = false;
  for (const auto& a : basis_.components(task.i))
    for (const auto& b : basis_.components(task.j))
      for (const auto& c : basis_.components(k))
        for (const auto& d : basis_.components(l))
          any |= fill_block(a, b, c, d, factor, selected.min_bound / selected.quartet.weight, column);
  return any;
}

bool SlabMaker::fill_block(const Basis::Component& a, const Basis::Component& b, const Basis::Component& c,
                           const Basis::Component& d, double factor, double min_bound, std::size_t column) {
  const double bound =
      screening_.component_bound(a.number, b.number) * screening_.component_bound(c.number, d.number);
  const auto width = std::size_t(d.size);
  const auto row_of = [&](int f, int g, int h) {
    return slab_.row(std::size_t(((a.offset + f) * slab_.nj + b.offset + g) * slab_.nk + c.offset + h)) +
           column + std::size_t(d.offset);
  };
  // The last index runs fastest in the slab, the first in libcint; the value is the same by symmetry.
  const bool computed = bound >= min_bound;
  const bool nonzero =
      computed && basis_.integrals(d.number, c.number, b.number, a.number, quartet_.data(), work_.data());
  if (computed) {
    ++quartets_;
    integrals_ += std::uint64_t(a.size * b.size * c.size * d.size);
  }
  const double* source = quartet_.data();
  for (int f = 0; f < a.size; ++f)
    for (int g = 0; g < b.size; ++g)
      for (int h = 0; h < c.size; ++h) {
        double* target = row_of(f, g, h);
        if (nonzero)
          for (std::size_t x = 0; x < width; ++x) target[x] = factor * *source++;
        else
          for (std::size_t x = 0; x < width; ++x) target[x] = 0.0;
      }
  return nonzero;
}

}  // namespace outcore::chem
