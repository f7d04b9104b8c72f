#include "chem/ci/kernel.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace outcore::chem::ci {
namespace {

/// Whether a panel has these rows, from these columns on.
bool has(const Panel& panel, const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& begins) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t place = panel.row_place(rows[i]);
    const int sector = panel.row_strings().irrep(rows[i]) ^ panel.space().target;
    if (place < 0 || panel.begin(place) + panel.column_strings().offset(sector) > begins[i]) return false;
  }
  return true;
}

}  // namespace

Kernel::Kernel(std::shared_ptr<const Space> space, const Integrals& integrals, Blas blas)
    : space_(std::move(space)),
      opposite_(space_, integrals, blas),
      alpha_(*space_, integrals, false, blas),
      beta_(*space_, integrals, true, blas),
      diagonal_(*space_, integrals) {}

void Kernel::check_range(std::int64_t first, std::int64_t last) const {
  const auto count = std::int64_t(space_->alpha_holes.size());
  if (first < 0 || last < first || last > count)
    throw std::invalid_argument("holes [" + std::to_string(first) + ", " + std::to_string(last) + ") of " +
                                std::to_string(count));
}

void Kernel::check_panels(const Panel& x, const Panel& t, const char* what) const {
  if (&x.space() != space_.get() || &t.space() != space_.get())
    throw std::invalid_argument(std::string(what) + ": a panel is of another kernel");
  if (x.single() != t.single() || x.transposed() != t.transposed())
    throw std::invalid_argument(std::string(what) +
                                ": both panels must have the same precision, and be transposed or not");
}

std::vector<Kernel::Reached> Kernel::reached(std::int64_t first, std::int64_t last) const {
  check_range(first, last);
  std::vector<Reached> all;
  for (std::int64_t k = first; k < last; ++k) {
    const std::uint64_t hole = space_->alpha_holes[std::size_t(k)];
    for (int q = 0; q < space_->orbitals.count(); ++q)
      if (!occupied(hole, q)) all.push_back({space_->alpha.rank(with(hole, q)), hole});
  }
  std::ranges::stable_sort(all, {}, &Reached::row);  // a row stays with its lowest hole
  const auto again = std::ranges::unique(all, {}, &Reached::row);
  all.erase(again.begin(), again.end());
  return all;
}

std::vector<std::int64_t> Kernel::rows_of(std::int64_t first, std::int64_t last) const {
  std::vector<std::int64_t> rows;
  for (const Reached& each : reached(first, last)) rows.push_back(each.row);
  return rows;
}

std::vector<std::int64_t> Kernel::begins_of(std::int64_t first, std::int64_t last) const {
  std::vector<std::int64_t> begins;
  for (const Reached& each : reached(first, last))
    begins.push_back(space_->first_beta(space_->alpha.irrep(each.row) ^ space_->target, each.hole));
  return begins;
}

void Kernel::check_opposite(const Panel& x, const Panel& t, std::int64_t first, std::int64_t last) const {
  check_panels(x, t, "opposite_spin");
  if (x.transposed()) throw std::invalid_argument("opposite_spin: rows must be alpha strings");
  const auto rows = rows_of(first, last), begins = begins_of(first, last);
  if (!has(x, rows, begins) || !has(t, rows, begins))
    throw std::invalid_argument("opposite_spin: holes [" + std::to_string(first) + ", " +
                                std::to_string(last) + ") need rows or columns that a panel has not");
}

void Kernel::check_same(const Panel& x, const Panel& t) const {
  check_panels(x, t, "same_spin");
  if (!std::ranges::equal(x.home(), t.home()))
    throw std::invalid_argument("same_spin: both panels must have the same home rows");
}

void Kernel::opposite_spin(const Panel& x, Panel& t, std::int64_t first, std::int64_t last,
                           int threads) const {
  check_opposite(x, t, first, last);
  if (&x == &t) throw std::invalid_argument("opposite_spin: the result needs a panel of its own");
  x.single() ? opposite_.apply<float>(x, t, first, last, threads)
             : opposite_.apply<double>(x, t, first, last, threads);
}

void Kernel::same_spin(const Panel& x, Panel& t, int threads) const {
  check_same(x, t);
  if (&x == &t) throw std::invalid_argument("same_spin: the result needs a panel of its own");
  const SameSpin& of = x.transposed() ? alpha_ : beta_;
  x.single() ? of.apply<float>(x, t, threads) : of.apply<double>(x, t, threads);
}

void Kernel::opposite_spin_density(const Panel& bra, const Panel& ket, double* sums, std::int64_t first,
                                   std::int64_t last, int threads) const {
  check_opposite(bra, ket, first, last);
  bra.single() ? opposite_.add_density<float>(bra, ket, sums, first, last, threads)
               : opposite_.add_density<double>(bra, ket, sums, first, last, threads);
}

void Kernel::same_spin_density(const Panel& bra, const Panel& ket, double* sums, int threads) const {
  check_same(bra, ket);
  if (space_->electrons() == 1) throw std::invalid_argument("same_spin_density: there is only one electron");
  const SameSpin& of = bra.transposed() ? alpha_ : beta_;
  bra.single() ? of.add_density<float>(bra, ket, sums, threads)
               : of.add_density<double>(bra, ket, sums, threads);
}

template <class Element>
void Kernel::diagonal(std::int64_t alpha, std::int64_t beta, const View<Element>& tile) const {
  if (!has(space_->alpha, alpha, tile.rows) || !has(space_->beta, beta, tile.columns))
    throw std::invalid_argument("diagonal: a tile of " + std::to_string(tile.rows) + " x " +
                                std::to_string(tile.columns) + " strings from " + std::to_string(alpha) +
                                ", " + std::to_string(beta) + " is not in the vector");
  diagonal_.fill(*space_, alpha, beta, tile);
}

template void Kernel::diagonal(std::int64_t, std::int64_t, const View<double>&) const;
template void Kernel::diagonal(std::int64_t, std::int64_t, const View<float>&) const;

double Kernel::opposite_spin_flops(std::int64_t first, std::int64_t last) const {
  check_range(first, last);
  double sum = 0;
  for (std::int64_t k = first; k < last; ++k) sum += opposite_.fewest_operations(k);
  return 2 * sum;
}

double Kernel::same_spin_flops(const Panel& panel) const {
  double sum = 0;
  for (int g = 0; g < space_->orbitals.groups(); ++g) {
    sum += double(panel.home_rows(g)) * (panel.transposed() ? alpha_ : beta_).operations(g ^ space_->target);
  }
  return 2 * sum;
}

}  // namespace outcore::chem::ci
