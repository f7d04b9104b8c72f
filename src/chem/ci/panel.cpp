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
constexpr std::int64_t page_bytes = 4096, skew_bytes = 512;
constexpr std::int64_t block = 16;  // rows and columns that are moved together where a tile is transposed

void check(std::span<const std::int64_t> indices, const Strings& strings) {
  for (std::size_t i = 0; i < indices.size(); ++i)
    if (indices[i] < 0 || indices[i] >= strings.count() || (i > 0 && indices[i] <= indices[i - 1]))
      throw std::invalid_argument("rows of a panel must ascend, in [0, " + std::to_string(strings.count()) +
                                  "); number " + std::to_string(i) + " is " + std::to_string(indices[i]));
}

}  // namespace

Panel::Panel(std::shared_ptr<const Space> space, std::span<const std::int64_t> home,
             std::span<const std::int64_t> others, std::span<const std::int64_t> begins, bool single,
             bool transposed, std::int64_t unit_bytes)
    : space_(std::move(space)),
      element_bytes_(single ? sizeof(float) : sizeof(double)),
      unit_bytes_(unit_bytes),
      transposed_(transposed) {
  if (unit_bytes < 64 || (unit_bytes & (unit_bytes - 1)))
    throw std::invalid_argument("a unit of " + std::to_string(unit_bytes) +
                                " bytes; it must be a power of two, at least 64");
  assign(home, others, begins);
}

Panel::~Panel() {
  release();
}

void Panel::release() noexcept {
  if (data_) munmap(data_, mapped_bytes_);
  data_ = nullptr;
  mapped_bytes_ = 0;
}

std::int64_t Panel::width(std::int64_t row) const noexcept {
  return column_strings().count(row_strings().irrep(row) ^ space_->target);
}

void Panel::assign(std::span<const std::int64_t> home, std::span<const std::int64_t> others,
                   std::span<const std::int64_t> begins) {
  check(home, row_strings());
  check(others, row_strings());
  if (begins.size() != others.size())
    throw std::invalid_argument("a panel of " + std::to_string(others.size()) + " other rows with " +
                                std::to_string(begins.size()) + " first columns");
  const std::int64_t unit = unit_bytes_ / element_bytes_;
  // Rows that are whole pages apart would share few lines of the cache.
  const std::int64_t apart = unit_bytes_ < page_bytes ? 0 : skew_bytes / element_bytes_;
  const auto up = [&](std::int64_t columns) { return (columns + unit - 1) / unit * unit; };
  std::vector<std::int64_t> rows(home.size() + others.size());
  std::vector<std::int64_t> first(rows.size()), offsets(rows.size()), own_home(home.begin(), home.end());
  std::array<std::int64_t, max_groups + 1> home_offsets{};
  std::array<std::int64_t, max_groups> base{}, stride{};
  std::int64_t elements = 0;
  for (int g = 0; g < space_->orbitals.groups(); ++g) {
    const auto of = std::size_t(g);
    home_offsets[of + 1] =
        std::lower_bound(home.begin(), home.end(), row_strings().offset(g + 1)) - home.begin();
    base[of] = elements;
    stride[of] = up(column_strings().count(g ^ space_->target)) + apart;
    elements += (home_offsets[of + 1] - home_offsets[of]) * stride[of];
  }
  for (std::size_t g = std::size_t(space_->orbitals.groups()); g < max_groups; ++g)
    home_offsets[g + 1] = home_offsets[g];
  std::merge(home.begin(), home.end(), others.begin(), others.end(), rows.begin());
  std::size_t at_home = 0, at_others = 0;
  for (std::size_t place = 0; place < rows.size(); ++place) {
    const std::int64_t row = rows[place];
    if (place > 0 && row == rows[place - 1])
      throw std::invalid_argument("row " + std::to_string(row) + " of a panel is given twice");
    const int irrep = row_strings().irrep(row);
    if (at_home < home.size() && home[at_home] == row) {
      const auto of = std::size_t(irrep);
      offsets[place] = base[of] + (std::int64_t(at_home++) - home_offsets[of]) * stride[of];
      continue;
    }
    const std::int64_t sector = column_strings().offset(irrep ^ space_->target), width = this->width(row);
    first[place] = begins[at_others++] - sector;
    if (first[place] < 0 || first[place] > width)
      throw std::invalid_argument("row " + std::to_string(row) + " of a panel cannot begin with column " +
                                  std::to_string(first[place] + sector));
    const std::int64_t before = first[place] / unit * unit;
    offsets[place] = elements - before;
    elements += up(width) - before + apart;
  }
  if (elements > std::numeric_limits<std::int64_t>::max() / element_bytes_)
    throw Error(ENOMEM, {.attempted = "allocate a panel of a vector",
                         .detail = std::to_string(elements) + " elements"});
  const auto needed = std::size_t(elements * element_bytes_);
  if (needed > mapped_bytes_) {
    release();
    rows_.clear(), home_.clear();  // so the panel is empty if there is no memory
    home_offsets_ = {};
    elements_ = 0;
    const bool large = needed >= huge_page_bytes;
    const std::size_t page = large ? huge_page_bytes : 4096;
    const std::size_t bytes = (needed + page - 1) / page * page;
    // Enough more memory for a huge page to begin in it; the system counts only touched memory.
    void* data =
        mmap(nullptr, bytes + (large ? page : 0), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
      throw Error(errno, {.attempted = "allocate a panel of a vector", .size_bytes = std::int64_t(bytes)});
    data_ = static_cast<std::byte*>(data);
    mapped_bytes_ = bytes;
    if (large) {
      auto* aligned =
          reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(data_) + page - 1) / page * page);
      const auto before = std::size_t(aligned - data_);
      if (before) munmap(data_, before);
      if (before < page) munmap(aligned + bytes, page - before);
      data_ = aligned;
      madvise(data_, bytes, MADV_HUGEPAGE);  // only a hint
    }
  }
  rows_ = std::move(rows);
  home_ = std::move(own_home);
  begins_ = std::move(first);
  offsets_ = std::move(offsets);
  home_offsets_ = home_offsets;
  home_base_ = base;
  home_stride_ = stride;
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

Panel::Strip Panel::strip(std::int64_t place) const noexcept {
  const std::int64_t first = begin(place) * element_bytes_ / unit_bytes_ * unit_bytes_;
  const std::int64_t all = width(rows_[std::size_t(place)]) * element_bytes_;
  const std::int64_t last = (all + unit_bytes_ - 1) / unit_bytes_ * unit_bytes_;
  return {data_ + offsets_[std::size_t(place)] * element_bytes_ + first, first, last - first};
}

/// move(elements of the panel, their stride, elements of the tile, rows, columns), for parts of the tile
/// that are matrices in the panel.
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
  const auto place_of = [&](std::int64_t index) {
    return std::lower_bound(rows_.begin(), rows_.end(), index) - rows_.begin();
  };
  const std::int64_t r0 = place_of(row), r1 = place_of(row + tile.rows);
  const std::int64_t from = column - column_strings().offset(other), to = from + tile.columns;
  const auto apart = [&](std::int64_t r) { return offsets_[std::size_t(r + 1)] - offsets_[std::size_t(r)]; };
  for (std::int64_t r = r0, end; r < r1; r = end) {
    const std::int64_t c = std::max(from, begin(r));
    for (end = r + 1; end < r1; ++end)  // as long as they look like rows of one matrix
      if (std::max(from, begin(end)) != c || apart(end - 1) != apart(r) ||
          rows_[std::size_t(end)] != rows_[std::size_t(end - 1)] + 1)
        break;
    if (c >= to) continue;
    Element* element =
        tile.data + (rows_[std::size_t(r)] - row) * tile.row_stride + (c - from) * tile.column_stride;
    move(at<Real>(r, c), end > r + 1 ? apart(r) : 0, element, end - r, to - c);
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
