#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "chem/hf/chance.hpp"
#include "chem/hf/dither.hpp"
#include "chem/hf/kernels.hpp"
#include "chem/hf/packing.hpp"
#include "chem/hf/slab.hpp"
#include "outcore/error.hpp"

namespace outcore::chem {
namespace {

static_assert(std::endian::native == std::endian::little);

std::size_t aligned(std::size_t bytes) {
  return (bytes + packed_alignment - 1) / packed_alignment * packed_alignment;
}

constexpr std::size_t label_bytes = sizeof(std::uint16_t) + sizeof(std::uint8_t);  // and code

std::size_t rows_offset(std::size_t shells) {
  return aligned(sizeof(PackedSlab) + shells * label_bytes);
}

Widths widths_of(const PackedSlab& head) {
  return {head.n8, head.n4, head.n3, head.n2, head.n1};
}

double step_of(int code) {
  static const auto steps = [] {
    std::array<double, last_code + 1> table;
    for (std::size_t at = 0; at < table.size(); ++at) table[at] = std::exp2(-double(at) / codes_per_octave);
    return table;
  }();
  return steps[std::size_t(code)];
}

}  // namespace

std::size_t SlabCodec::packed_bound(const Slab& slab) noexcept {
  return rows_offset(slab.shells.size()) + 8 * slab.rows() * slab.columns.size() + packed_alignment;
}

/// Chooses which shells l are kept, and how. Shells of one width stand together, the widest first, and keep
/// their order, so that the contraction can copy runs of neighbouring functions.
void SlabCodec::choose(const Basis& basis, const Slab& slab) {
  largest_.assign(slab.row_length, 0.0);
  for (std::size_t r = 0; r < slab.rows(); ++r)
    kernels().largest_of_columns(slab.row(r), slab.row_length, largest_.data());
  kept_.clear();
  std::int32_t column = 0;
  for (const auto l : slab.shells) {
    const auto from = largest_.begin() + column;
    const double largest = *std::max_element(from, from + basis.size(l));
    const double limit = accuracy_.limit(slab.i, slab.j, slab.k, l);
    const bool there =
        largest >= limit ||
        largest > limit * Chance(Chance::Purpose::packing, slab.i, slab.j, slab.k, l, slab.first_pair).next();
    if (there) {
      const auto [width, code] =
          packed_form(std::max(largest, limit), accuracy_.step(slab.i, slab.j, slab.k, l));
      kept_.push_back({column, l, std::uint8_t(width), std::uint8_t(code), std::max(1.0, limit / largest)});
    }
    column += basis.size(l);
  }
  std::sort(kept_.begin(), kept_.end(),
            [](const Kept& a, const Kept& b) { return std::pair(b.width, a.l) < std::pair(a.width, b.l); });
}

std::size_t SlabCodec::pack(const Basis& basis, const Slab& slab, std::byte* out) {
  choose(basis, slab);
  if (kept_.empty()) return 0;

  PackedSlab head{};
  head.i = std::uint16_t(slab.i), head.j = std::uint16_t(slab.j), head.k = std::uint16_t(slab.k);
  head.first_pair = std::uint16_t(slab.first_pair), head.pairs = std::uint16_t(slab.pairs);
  head.shells = std::uint16_t(kept_.size());
  head.dither = dither_seed(slab.i, slab.j, slab.k, kept_.front().l);
  source_.clear(), steps_.clear(), per_step_.clear(), weights_.clear();
  std::byte* labels = out + sizeof(PackedSlab);
  std::byte* codes = labels + kept_.size() * sizeof(std::uint16_t);
  for (const Kept& kept : kept_) {
    std::memcpy(labels, &kept.l, sizeof kept.l);
    labels += sizeof kept.l;
    *codes++ = std::byte(kept.code);
    const int size = basis.size(kept.l);
    const double step = kept.width == 8 ? 0.0 : step_of(kept.code);
    for (int f = 0; f < size; ++f) {
      source_.push_back(kept.column + f);
      steps_.push_back(step);
      per_step_.push_back(kept.weight / step_of(kept.code));
      weights_.push_back(kept.weight);
    }
    auto& columns = kept.width == 8   ? head.n8
                    : kept.width == 4 ? head.n4
                    : kept.width == 3 ? head.n3
                    : kept.width == 2 ? head.n2
                                      : head.n1;
    columns = std::uint16_t(columns + size);
  }
  const Widths widths = widths_of(head);
  const std::size_t values = rows_offset(head.shells);
  head.bytes = std::uint32_t(aligned(values + slab.rows() * widths.row_bytes()));
  std::memcpy(out, &head, sizeof head);
  row_.resize(source_.size());
  const std::size_t first_row = std::size_t(slab.first_pair) * std::size_t(slab.nk);
  for (std::size_t r = 0; r < slab.rows(); ++r) {
    std::byte* const packed = out + values + r * widths.row_bytes();
    const float* const dither = dither_of_row(head.dither, first_row + r);
    kernels().pack_row(slab.row(r), source_.data(), widths, per_step_.data(), dither, packed);
    kernels().unpack_row(packed, widths, steps_.data(), dither, row_.data());
    verify(slab, r);
  }
  stored_ += slab.rows() * widths.columns();
  return head.bytes;
}

/// Compares row_, which was unpacked again, with a row of the slab.
void SlabCodec::verify(const Slab& slab, std::size_t r) const {
  // The product with 1 / step and the sum with the dither round too: a few units in the last place of the
  // value.
  constexpr double slack = 4 * std::numeric_limits<double>::epsilon();
  const double* row = slab.row(r);
  bool good = true;
  for (std::size_t c = 0; c < row_.size(); ++c) {
    const double value = weights_[c] * row[source_[c]];
    good &= std::abs(row_[c] - value) <= (0.5 + 1e-7) * steps_[c] + slack * std::abs(value);
  }
  if (!good)
    throw Error(no_errno, {.attempted = "pack integrals",
                           .detail = "an integral of shells " + std::to_string(slab.i) + ", " +
                                     std::to_string(slab.j) + ", " + std::to_string(slab.k) +
                                     " does not come back to within half its step; it may not be a number"});
}

std::size_t SlabCodec::unpack(const Basis& basis, const std::byte* in, std::size_t size, Slab& slab) {
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
  if (head.pairs == 0 || int(head.first_pair) + int(head.pairs) > slab.pairs)
    throw damaged("a label names no functions");
  slab.first_pair = head.first_pair, slab.pairs = head.pairs;
  const std::size_t first_row = std::size_t(slab.first_pair) * std::size_t(slab.nk);
  slab.weights.clear();
  slab.shells.resize(head.shells);
  std::memcpy(slab.shells.data(), in + sizeof head, head.shells * sizeof(std::uint16_t));
  std::size_t columns = 0;
  for (auto l : slab.shells) {
    if (l >= basis.shells()) throw damaged("a label names no shell");
    columns += std::size_t(basis.size(l));
  }
  // Checks the labels before memory is allocated for them.
  const Widths widths = widths_of(head);
  if (widths.columns() != columns || aligned(values + slab.rows() * widths.row_bytes()) != head.bytes)
    throw damaged("labels and values disagree");
  if (head.shells > 1 && columns * slab.rows() > Slab::max_values)
    throw damaged("a slab is larger than the codec ever writes");
  slab.set_shells(basis);
  slab.steps.clear();
  const std::byte* codes = in + sizeof head + head.shells * sizeof(std::uint16_t);
  for (auto l : slab.shells)
    slab.steps.resize(slab.steps.size() + std::size_t(basis.size(l)),
                      step_of(std::to_integer<int>(*codes++)));
  std::fill_n(slab.steps.begin(), widths.n8, 0.0);
  for (std::size_t r = 0; r < slab.rows(); ++r)
    kernels().unpack_row(in + values + r * widths.row_bytes(), widths, slab.steps.data(),
                         dither_of_row(head.dither, first_row + r), slab.row(r));
  return head.bytes;
}

}  // namespace outcore::chem
