#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <numeric>

#include "chem/kernels.hpp"
#include "chem/packing.hpp"
#include "outcore/chem/slab.hpp"
#include "outcore/error.hpp"

namespace outcore::chem {
namespace {

static_assert(std::endian::native == std::endian::little);

std::size_t aligned(std::size_t bytes) {
  return (bytes + packed_alignment - 1) / packed_alignment * packed_alignment;
}

std::size_t rows_offset(std::size_t shells) {
  return aligned(sizeof(PackedSlab) + shells * sizeof(std::uint16_t));
}

Widths widths_of(const PackedSlab& head) {
  return {head.n8, head.n4, head.n3, head.n2, head.n1};
}

}  // namespace

std::size_t SlabCodec::packed_bound(const Slab& slab) noexcept {
  return rows_offset(slab.shells.size()) + 8 * slab.rows() * slab.columns.size() + packed_alignment;
}

std::size_t SlabCodec::pack(const Basis& basis, const Slab& slab, std::byte* out) {
  largest_.assign(slab.row_length, 0.0);
  for (std::size_t r = 0; r < slab.rows(); ++r)
    kernels().largest_of_columns(slab.row(r), slab.row_length, largest_.data());

  // Shells of one width stand together, the widest first; among them in their own order, which leaves runs of
  // neighbouring functions for the contraction to copy.
  const auto count = slab.shells.size();
  width_.resize(count);
  std::vector<std::int32_t>& start = source_;
  start.resize(count);
  std::size_t column = 0;
  for (std::size_t s = 0; s < count; ++s) {
    const auto size = std::size_t(basis.size(slab.shells[s]));
    const auto from = largest_.begin() + std::ptrdiff_t(column);
    width_[s] = std::uint8_t(packed_width(*std::max_element(from, from + std::ptrdiff_t(size)) / step_));
    start[s] = std::int32_t(column);
    column += size;
  }
  order_.resize(count);
  std::iota(order_.begin(), order_.end(), std::uint16_t(0));
  std::sort(order_.begin(), order_.end(), [&](auto a, auto b) {
    return std::pair(width_[b], slab.shells[a]) < std::pair(width_[a], slab.shells[b]);
  });
  while (!order_.empty() && width_[order_.back()] == 0) order_.pop_back();
  if (order_.empty()) return 0;

  PackedSlab head{};
  head.i = std::uint16_t(slab.i), head.j = std::uint16_t(slab.j), head.k = std::uint16_t(slab.k);
  head.shells = std::uint16_t(order_.size());
  std::vector<std::int32_t> gather;
  gather.reserve(slab.columns.size());
  auto* labels = out + sizeof(PackedSlab);
  for (auto s : order_) {
    std::memcpy(labels, &slab.shells[s], sizeof(std::uint16_t));
    labels += sizeof(std::uint16_t);
    const int size = basis.size(slab.shells[s]);
    for (int f = 0; f < size; ++f) gather.push_back(start[s] + f);
    auto& columns = width_[s] == 8   ? head.n8
                    : width_[s] == 4 ? head.n4
                    : width_[s] == 3 ? head.n3
                    : width_[s] == 2 ? head.n2
                                     : head.n1;
    columns = std::uint16_t(columns + size);
  }
  const Widths widths = widths_of(head);
  const std::size_t values = rows_offset(head.shells);
  head.bytes = std::uint32_t(aligned(values + slab.rows() * widths.row_bytes()));
  std::memcpy(out, &head, sizeof head);
  for (std::size_t r = 0; r < slab.rows(); ++r)
    kernels().pack_row(slab.row(r), gather.data(), widths, 1.0 / step_,
                       out + values + r * widths.row_bytes());
  stored_ += slab.rows() * widths.columns();
  return head.bytes;
}

std::size_t SlabCodec::unpack(const Basis& basis, const std::byte* in, std::size_t size, Slab& slab) const {
  const auto damaged = [&](const char* what) {
    return Error(EIO, {.attempted = "integral record", .detail = std::string("damaged: ") + what});
  };
  PackedSlab head;
  if (size < sizeof head) throw damaged("too short for a label");
  std::memcpy(&head, in, sizeof head);
  const std::size_t values = rows_offset(head.shells);
  if (head.bytes > size || head.bytes < values) throw damaged("a slab is longer than its record");
  if (head.shells == 0) throw damaged("a slab without columns");
  if (std::max({head.i, head.j, head.k}) >= basis.shells()) throw damaged("a label names no shell");

  slab.label(basis, head.i, head.j, head.k);
  slab.shells.resize(head.shells);
  std::memcpy(slab.shells.data(), in + sizeof head, head.shells * sizeof(std::uint16_t));
  for (auto l : slab.shells)
    if (l >= basis.shells()) throw damaged("a label names no shell");
  slab.set_shells(basis);
  const Widths widths = widths_of(head);
  if (widths.columns() != slab.columns.size() || values + slab.rows() * widths.row_bytes() > head.bytes)
    throw damaged("labels and values disagree");
  for (std::size_t r = 0; r < slab.rows(); ++r)
    kernels().unpack_row(in + values + r * widths.row_bytes(), widths, slab.row(r));
  return head.bytes;
}

}  // namespace outcore::chem
