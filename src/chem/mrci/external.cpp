#include "chem/mrci/external.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace outcore::chem::mrci {
namespace {

std::size_t pair_of(int p, int q) noexcept {
  if (p < q) std::swap(p, q);
  return std::size_t(p) * (std::size_t(p) + 1) / 2 + std::size_t(q);
}

/// Calls each(c, d) for external orbitals c of irrep g and d of another irrep, with d below `end_of(c)`.
template <class EndOf, class Each>
void each_pair(const Externals& externals, int irrep, const EndOf& end_of, const Each& each) {
  for (int g = 0; g < externals.groups(); ++g) {
    const int h = g ^ irrep;
    for (int c = externals.first(g); c < externals.first(g) + externals.count(g); ++c)
      for (int d = externals.first(h); d < std::min(externals.first(h) + externals.count(h), end_of(c)); ++d)
        each(c, d);
  }
}

/// Number of d in an irrep that are below `end`.
int below_in(const Externals& externals, int irrep, int end) {
  return std::clamp(end - externals.first(irrep), 0, externals.count(irrep));
}

}  // namespace

ExternalTables::ExternalTables(const Space& space) : space_(space) {
  const Externals& externals = space.externals();
  for (int irrep = 0; irrep < externals.groups(); ++irrep)
    for (int odd = 0; odd < 2; ++odd) {
      int rows = 0;
      for (int g = 0; g < externals.groups(); ++g)
        for (int c = externals.first(g); c < externals.first(g) + externals.count(g); ++c) {
          rows_before_.push_back(rows);
          rows += below_in(externals, g ^ irrep, c + 1 - odd);
        }
      tables_.push_back({size_, rows});
      size_ += std::int64_t(rows) * rows;
    }
}

std::vector<ExternalTables::Part> ExternalTables::rows(const Integrals& v, int c,
                                                       const double* column) const {
  const Externals& externals = space_.externals();
  const int u = space_.internals(), count = externals.count();
  const std::size_t pairs = pair_of(count, 0);
  int of_c = 0;
  while (c >= externals.first(of_c) + externals.count(of_c)) ++of_c;
  std::vector<Part> found;
  for (int irrep = 0; irrep < externals.groups(); ++irrep) {
    const int of_d = of_c ^ irrep, first = externals.first(of_d);
    for (int odd = 0; odd < 2; ++odd) {
      const Table& table = tables_[std::size_t(2 * irrep + odd)];
      const int end = first + below_in(externals, of_d, c + 1 - odd);
      if (end == first) continue;
      const std::int64_t row = rows_before_[std::size_t((2 * irrep + odd) * count + c)];
      Part part{table.first + row * table.size, {}};
      part.values.reserve(std::size_t(end - first) * std::size_t(table.size));
      const double sign = odd ? -1.0 : 1.0;
      for (int d = first; d < end; ++d) {
        const double weight = c == d ? 0.25 : 0.5;
        each_pair(
            externals, irrep, [&](int a) { return a + 1 - odd; },
            [&](int a, int b) {
              const double straight = column[std::size_t(a) * pairs + pair_of(b, d)],
                           crossed = column[std::size_t(b) * pairs + pair_of(a, d)];
              part.values.push_back(weight * (v.opposite(straight, u + a, u + c, u + b, u + d) +
                                              sign * v.opposite(crossed, u + a, u + d, u + b, u + c)));
            });
      }
      found.push_back(std::move(part));
    }
  }
  return found;
}

void ExternalTables::reserve() {
  line_.resize(std::size_t(size_));
}

void ExternalTables::take(const Integrals& integrals, int c, const double* column) {
  if (std::int64_t(line_.size()) != size_) throw std::logic_error("there is no room for tables of integrals");
  for (const Part& part : rows(integrals, c, column))
    std::copy(part.values.begin(), part.values.end(), line_.begin() + part.first);
}

void ExternalTables::read_from(const DiskArrayAccess& array, std::int64_t slab_elements) {
  if (array.type() != ElementType::float64 || array.shape().rank() != 1 || array.shape()[0] < size_)
    throw std::invalid_argument("an array of another shape than the tables of integrals");
  array_ = &array;
  slab_ = std::max<std::int64_t>(slab_elements, 1);
}

void ExternalTables::multiply(const Table& table, const Blas& blas, int m, const double* a, int lda,
                              double* c, int ldc, Slabs& slabs) const {
  const int n = table.size;
  if (n == 0) return;
  if (array_ == nullptr) {
    if (std::int64_t(line_.size()) != size_) throw std::logic_error("there are no tables of integrals");
    blas.multiply<double>(m, n, n, a, lda, line_.data() + table.first, n, c, ldc);
    return;
  }
  for (int line = 0; line < m; ++line) std::fill_n(c + std::ptrdiff_t(line) * ldc, n, 0.0);
  const int rows = int(std::clamp<std::int64_t>(slab_ / n, 1, n));
  const auto begin = [&](int row, Aligned<double>& slab) {
    const std::int64_t first = table.first + std::int64_t(row) * n;
    const std::int64_t count = std::int64_t(std::min(rows, n - row)) * n;
    if (std::int64_t(slab.size()) < count) slab.resize(std::size_t(count));
    const Extents shape{count};
    return array_->get_async(Box{Extents{first}, Extents{first + count}},
                             {reinterpret_cast<std::byte*>(slab.data()), row_major(shape, sizeof(double))});
  };
  Request request = begin(0, slabs.next);
  for (int row = 0; row < n; row += rows) {
    request.wait();
    std::swap(slabs.now, slabs.next);
    if (row + rows < n) request = begin(row + rows, slabs.next);
    blas.add<double>(m, n, std::min(rows, n - row), a + row, lda, slabs.now.data(), n, c, ldc);
  }
}

}  // namespace outcore::chem::mrci
