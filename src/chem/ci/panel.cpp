#include "chem/ci/panel.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "base/thread_team.hpp"
#include "outcore/error.hpp"

namespace outcore::chem::ci {
namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
constexpr std::int64_t line_bytes = 64;
constexpr std::int64_t block = 16;  // rows and columns that are moved together where a tile is transposed

std::array<std::int64_t, max_groups + 1> checked(std::span<const std::int64_t> indices,
                                                 const Strings& strings, const char* what) {
  for (std::size_t i = 0; i < indices.size(); ++i)
    if (indices[i] < 0 || indices[i] >= strings.count() || (i > 0 && indices[i] <= indices[i - 1]))
      throw std::invalid_argument(std::string(what) + " of a panel must ascend, in [0, " +
                                  std::to_string(strings.count()) + "); number " + std::to_string(i) +
                                  " is " + std::to_string(indices[i]));
  std::array<std::int64_t, max_groups + 1> offsets{};
  const auto groups = strings.offsets().size() - 1;
  for (std::size_t g = 0; g <= max_groups; ++g)
    offsets[g] = std::lower_bound(indices.begin(), indices.end(), strings.offset(int(std::min(g, groups)))) -
                 indices.begin();
  return offsets;
}

}  // namespace

Panel::Panel(std::shared_ptr<const Space> space, std::span<const std::int64_t> rows,
             std::span<const std::int64_t> columns, bool single, bool transposed)
    : space_(std::move(space)),
      element_bytes_(single ? sizeof(float) : sizeof(double)),
      transposed_(transposed) {
  assign(rows, columns);
}

Panel::~Panel() {
  release();
}

void Panel::release() noexcept {
  if (data_) munmap(data_, mapped_bytes_);
  data_ = nullptr;
  mapped_bytes_ = 0;
}

void Panel::assign(std::span<const std::int64_t> rows, std::span<const std::int64_t> columns) {
  const auto row_offsets = checked(rows, row_strings(), "rows");
  const auto column_offsets = checked(columns, column_strings(), "columns");
  std::vector<std::int64_t> own_rows(rows.begin(), rows.end()), own_columns(columns.begin(), columns.end());
  std::array<std::int64_t, max_groups> base{}, stride{};
  const std::int64_t line = line_bytes / element_bytes_;
  std::int64_t elements = 0;
  for (int g = 0; g < space_->orbitals.groups(); ++g) {
    const auto at = std::size_t(g), other = std::size_t(g ^ space_->target);
    const std::int64_t width = column_offsets[other + 1] - column_offsets[other];
    stride[at] = (width + line - 1) / line * line;
    base[at] = elements;
    elements += (row_offsets[at + 1] - row_offsets[at]) * stride[at];
  }
  if (elements > std::numeric_limits<std::int64_t>::max() / element_bytes_)
    throw Error(ENOMEM, {.attempted = "allocate a panel of a vector",
                         .detail = std::to_string(elements) + " elements"});
  const auto needed = std::size_t(elements * element_bytes_);
  if (needed > mapped_bytes_) {
    release();
    rows_.clear(), columns_.clear();  // so is the panel, if there is no memory
    row_offsets_ = column_offsets_ = {};
    elements_ = 0;
    const bool large = needed >= huge_page_bytes;
    const std::size_t unit = large ? huge_page_bytes : 4096;
    const std::size_t bytes = (needed + unit - 1) / unit * unit;
    // So much more that a huge page begins in it; the system counts what is touched.
    void* data =
        mmap(nullptr, bytes + (large ? unit : 0), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
      throw Error(errno, {.attempted = "allocate a panel of a vector", .size_bytes = std::int64_t(bytes)});
    data_ = static_cast<std::byte*>(data);
    mapped_bytes_ = bytes;
    if (large) {
      auto* aligned =
          reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(data_) + unit - 1) / unit * unit);
      const auto before = std::size_t(aligned - data_);
      if (before) munmap(data_, before);
      if (before < unit) munmap(aligned + bytes, unit - before);
      data_ = aligned;
      madvise(data_, bytes, MADV_HUGEPAGE);  // only a hint
    }
  }
  rows_ = std::move(own_rows);
  columns_ = std::move(own_columns);
  row_offsets_ = row_offsets;
  column_offsets_ = column_offsets;
  base_ = base;
  stride_ = stride;
  elements_ = elements;
}

void Panel::clear(int threads) {
  const std::int64_t bytes = nbytes();
  const std::int64_t team = std::clamp<std::int64_t>(bytes >> 20, 1, std::max(threads, 1));
  in_team(int(team), [&](int t) {
    const std::int64_t first = bytes * t / team, last = bytes * (t + 1) / team;
    if (last > first) std::memset(data_ + first, 0, std::size_t(last - first));
  });
}

std::int64_t Panel::row_place(std::int64_t row) const noexcept {
  const auto at = std::lower_bound(rows_.begin(), rows_.end(), row);
  return at != rows_.end() && *at == row ? at - rows_.begin() : -1;
}

std::int64_t Panel::column_place(std::int64_t column) const noexcept {
  const auto at = std::lower_bound(columns_.begin(), columns_.end(), column);
  if (at == columns_.end() || *at != column) return -1;
  return at - columns_.begin() - first_column(column_strings().irrep(column));
}

/// move(elements of the panel, their stride, elements of the tile, rows, columns), for parts of the tile
/// whose columns are neighbours in the panel.
template <class Real, class Element, class Move>
void Panel::each_run(std::int64_t row, std::int64_t column, const View<Element>& tile,
                     const Move& move) const {
  if (tile.rows <= 0 || tile.columns <= 0) return;
  const bool inside = has(row_strings(), row, tile.rows) && has(column_strings(), column, tile.columns);
  const int irrep = inside ? row_strings().irrep(row) : 0, other = irrep ^ space_->target;
  if (!inside || row_strings().irrep(row + tile.rows - 1) != irrep ||
      column_strings().irrep(column) != other || column_strings().irrep(column + tile.columns - 1) != other)
    throw std::invalid_argument("a tile of " + std::to_string(tile.rows) + " rows from " +
                                std::to_string(row) + " and " + std::to_string(tile.columns) +
                                " columns from " + std::to_string(column) + " is not in one sector");
  const std::int64_t last_row = row + tile.rows, last_column = column + tile.columns;
  const auto first_in = [](const std::vector<std::int64_t>& indices, std::int64_t index) {
    return std::lower_bound(indices.begin(), indices.end(), index) - indices.begin();
  };
  const std::int64_t r0 = first_in(rows_, row), r1 = first_in(rows_, last_row);
  const std::int64_t c0 = first_in(columns_, column), c1 = first_in(columns_, last_column);
  const auto end_of_run = [](const std::vector<std::int64_t>& indices, std::int64_t first,
                             std::int64_t last) {
    const auto at = [&](std::int64_t i) { return indices[std::size_t(i)] - i; };
    if (at(last - 1) == at(first)) return last;
    std::int64_t end = first + 1;
    while (at(end) == at(first)) ++end;
    return end;
  };
  for (std::int64_t r = r0, r_end; r < r1; r = r_end) {
    r_end = end_of_run(rows_, r, r1);
    for (std::int64_t c = c0, c_end; c < c1; c = c_end) {
      c_end = end_of_run(columns_, c, c1);
      Element* from = tile.data + (rows_[std::size_t(r)] - row) * tile.row_stride +
                      (columns_[std::size_t(c)] - column) * tile.column_stride;
      move(this->row<Real>(r, irrep) + (c - first_column(other)), stride(irrep), from, r_end - r, c_end - c);
    }
  }
}

namespace {

/// each(panel element, tile element) of a part, in an order that serves both.
template <class Real, class Element, class Each>
void in_blocks(Real* panel, std::int64_t stride, Element* tile, const View<Element>& view, std::int64_t rows,
               std::int64_t columns, const Each& each) {
  if (view.column_stride == 1) {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) each(panel[i * stride + j], tile[i * view.row_stride + j]);
    return;
  }
  for (std::int64_t i0 = 0; i0 < rows; i0 += block)
    for (std::int64_t j0 = 0; j0 < columns; j0 += block)
      for (std::int64_t j = j0; j < std::min(columns, j0 + block); ++j)
        for (std::int64_t i = i0; i < std::min(rows, i0 + block); ++i)
          each(panel[i * stride + j], tile[i * view.row_stride + j * view.column_stride]);
}

}  // namespace

template <class Element>
void Panel::load(std::int64_t row, std::int64_t column, const View<const Element>& tile, double scale) {
  const auto typed = [&]<class Real>(Real) {
    each_run<Real>(
        row, column, tile,
        [&](Real* panel, std::int64_t stride, const Element* from, std::int64_t rows, std::int64_t n) {
          const auto factor = Element(scale);
          in_blocks(panel, stride, from, tile, rows, n,
                    [&](Real& to, const Element& value) { to = Real(factor * value); });
        });
  };
  single() ? typed(float{}) : typed(double{});
}

template <class Element>
void Panel::unload(std::int64_t row, std::int64_t column, const View<Element>& tile, double scale) const {
  const auto typed = [&]<class Real>(Real) {
    each_run<Real>(row, column, tile,
                   [&](Real* panel, std::int64_t stride, Element* to, std::int64_t rows, std::int64_t n) {
                     const auto factor = Element(scale);
                     in_blocks(panel, stride, to, tile, rows, n,
                               [&](const Real& value, Element& sum) { sum += factor * Element(value); });
                   });
  };
  single() ? typed(float{}) : typed(double{});
}

template void Panel::load(std::int64_t, std::int64_t, const View<const double>&, double);
template void Panel::load(std::int64_t, std::int64_t, const View<const float>&, double);
template void Panel::unload(std::int64_t, std::int64_t, const View<double>&, double) const;
template void Panel::unload(std::int64_t, std::int64_t, const View<float>&, double) const;

}  // namespace outcore::chem::ci
