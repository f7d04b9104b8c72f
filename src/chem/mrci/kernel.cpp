#include "chem/mrci/kernel.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "chem/common/aligned.hpp"
#include "chem/common/masks.hpp"

namespace outcore::chem::mrci {
namespace {

constexpr std::int64_t memory_batch = std::int64_t{1} << 18;  // elements of a panel of lines
constexpr std::int64_t disk_batch = std::int64_t{1} << 21;    // larger, because each task reads all integrals
constexpr std::int64_t max_lines = 128, max_disk_lines = 1024;
constexpr double cost_of_element = 8;  // cost, in operations, of an element that is gathered and added back

/// Elements of units.
std::vector<std::int64_t> sizes_of(const Space& space, std::span<const std::int64_t> units) {
  std::vector<std::int64_t> sizes;
  std::size_t at = 0;
  for (const Record& each : space.records()) {
    const std::size_t unit = units.empty() ? at : std::size_t(units[at]);
    sizes.resize(std::max(sizes.size(), unit + 1));
    sizes[unit] += each.size;
    ++at;
  }
  return sizes;
}

}  // namespace

/// The memory of one thread, and its work on holes.
class Kernel::Worker {
 public:
  Worker(const Kernel& kernel, std::span<const double> x, std::span<double> t,
         std::span<const std::int64_t> offsets, bool shared)
      : kernel_(kernel),
        space_(*kernel.space_),
        reacher_(space_, kernel.pairs_),
        x_(x),
        t_(t),
        offsets_(offsets),
        shared_(shared) {}

  void lines(const Holes& of, std::int64_t first, std::int64_t last);
  void spectators(const Holes& of, const Hole& hole);

 private:
  /// Where a record begins in x and t.
  [[nodiscard]] std::int64_t offset_of(const PanelSegment& segment) const {
    const std::int64_t at = offsets_[std::size_t(segment.record)];
    const auto end = std::int64_t(std::min(x_.size(), t_.size()));
    if (at < 0 || at + space_.record(segment.record).size > end)
      throw std::out_of_range("a record of the task is not there");
    return at;
  }
  void gather_all(double* panel) {
    for (const PanelSegment& each : reach_.segments)
      gather(each, space_.externals(), space_.record(each.record).irrep, x_.data() + offset_of(each), panel,
             reach_.columns);
  }
  void scatter_all(const double* panel) {
    for (const PanelSegment& each : reach_.segments) {
      std::unique_lock<std::mutex> lock;
      if (shared_) lock = std::unique_lock(kernel_.locks_[std::size_t(each.record) % kernel_.locks_.size()]);
      scatter(each, space_.externals(), space_.record(each.record).irrep, panel, reach_.columns,
              t_.data() + offset_of(each));
    }
  }
  template <class Pairs>
  void multiply_mixed(const Pairs& pairs, int lines);
  void add_external(const OppositePairs& pairs, int lines);
  void add_external(const EqualPairs& pairs, int lines);

  const Kernel& kernel_;
  const Space& space_;
  Reacher reacher_;
  std::span<const double> x_;
  std::span<double> t_;
  std::span<const std::int64_t> offsets_;
  bool shared_;
  Reach reach_;
  Aligned<double> d_, e_, part_, even_, odd_, even_product_, odd_product_;
  ExternalTables::Slabs slabs_;
};

Kernel::Kernel(std::shared_ptr<const Space> space, const Integrals& integrals, const double* coulomb,
               const double* exchange, Blas blas)
    : space_(std::move(space)),
      blas_(blas),
      constant_(integrals.constant),
      integrals_(integrals),
      externals_(*space_) {
  if (integrals.alpha_electrons + integrals.beta_electrons < 2)
    throw std::invalid_argument("a multireference CI needs two electrons");
  if (integrals.orbitals != space_->orbitals()) throw std::invalid_argument("integrals of other orbitals");
  for (int g = 0; g < space_->externals().groups(); ++g) {
    pairs_.opposite.emplace_back(*space_, g, integrals);
    pairs_.same.emplace_back(*space_, g, integrals);
  }
  holes_ = list_holes(*space_);
  const auto square = std::size_t(integrals.orbitals) * std::size_t(integrals.orbitals);
  one_.assign(integrals.one, integrals.one + square);
  coulomb_.assign(coulomb, coulomb + square);
  exchange_.assign(exchange, exchange + square);
  integrals_.one = one_.data();
  integrals_.rows = nullptr;
}

std::int64_t Kernel::integral_bytes() const noexcept {
  std::size_t elements = 0;
  for (const auto& each : pairs_.opposite) elements += each.matrix.size() + each.to_external.size();
  for (const auto& each : pairs_.same) elements += each.matrix.size() + each.to_external.size();
  return std::int64_t(elements * sizeof(double)) + externals_.memory_bytes();
}

std::int64_t Kernel::length_of(const Holes& of) const noexcept {
  if (of.part == Part::opposite) {
    const OppositePairs& pairs = pairs_.opposite[std::size_t(of.irrep)];
    return std::int64_t(pairs.mixed) + pairs.external;
  }
  const EqualPairs& pairs = pairs_.same[std::size_t(of.irrep)];
  return std::int64_t(pairs.mixed) + pairs.external;
}

std::int64_t Kernel::batch_elements() const noexcept {
  return externals_.on_disk() ? disk_batch : memory_batch;
}

std::int64_t Kernel::work_bytes() const noexcept {
  std::int64_t longest = 0;
  for (const Holes& of : holes_)
    if (is_line(of.part)) longest = std::max(longest, length_of(of));
  const std::int64_t most = externals_.on_disk() ? max_disk_lines : max_lines;
  const std::int64_t panel = std::max(longest, std::min(batch_elements(), most * longest));
  const std::int64_t slab = externals_.on_disk() ? std::max(longest, externals_.slab_elements()) : 0;
  return std::int64_t(sizeof(double)) * (4 * panel + 2 * slab);
}

// ---- tasks ----

double Kernel::cost_of(const Holes& of, const Hole& hole) const {
  const Externals& externals = space_->externals();
  if (of.part == Part::opposite) {
    const OppositePairs& pairs = pairs_.opposite[std::size_t(of.irrep)];
    const double mixed = pairs.mixed, external = pairs.external;
    return 2 * mixed * mixed + 4 * mixed * external + external * external +
           cost_of_element * (mixed + external);
  }
  if (of.part == Part::same) {
    const EqualPairs& pairs = pairs_.same[std::size_t(of.irrep)];
    const double all = pairs.mixed + pairs.external;
    return 2 * all * all + cost_of_element * all;
  }
  const int u = space_->internals(), outside = externals.count();
  const double empty_first = u - std::popcount(hole.first), empty_second = u - std::popcount(hole.second);
  const double g = externals.groups();
  if (is_whole(of.part)) {
    const double rows =
        (is_opposite(of.part) ? empty_first * empty_second : empty_first * empty_first / 2) / g;
    return (2 * rows + cost_of_element) * rows * outside * outside;
  }
  const double rows =
      outside * (of.part == Part::opposite_first ? empty_first + empty_second : empty_first) / g;
  return (2 * rows + cost_of_element) * rows * outside;
}

std::vector<HoleTask> Kernel::tasks(double max_cost, std::int64_t max_elements,
                                    std::span<const std::int64_t> units) const {
  std::vector<HoleTask> found;
  const Reacher reacher(*space_, pairs_);
  Reach reach;
  const std::vector<std::int64_t> sizes = sizes_of(*space_, units);
  std::vector<std::int64_t> there, more;
  for (std::size_t list = 0; list < holes_.size(); ++list) {
    const Holes& of = holes_[list];
    HoleTask task{std::int32_t(list), 0, 0, 0};
    there.clear();
    std::int64_t elements = 0;
    for (std::int64_t i = 0; i < std::int64_t(of.holes.size()); ++i) {
      const Hole& hole = of.holes[std::size_t(i)];
      const double cost = cost_of(of, hole);
      std::int64_t added = 0;
      if (max_elements > 0) {
        more.clear();
        touched(reacher, of, hole, reach, units, more);
        for (std::int64_t each : more)
          if (!std::binary_search(there.begin(), there.end(), each)) added += sizes[std::size_t(each)];
      }
      if (task.last > task.first &&
          (task.cost + cost > max_cost || (max_elements > 0 && elements + added > max_elements))) {
        found.push_back(task);
        task = {std::int32_t(list), i, i, 0};
        there.clear();
        elements = 0;
        for (std::int64_t each : more) elements += sizes[std::size_t(each)];
      } else {
        elements += added;
      }
      if (added > 0 || there.empty()) {
        const auto middle = std::int64_t(there.size());
        there.insert(there.end(), more.begin(), more.end());
        std::inplace_merge(there.begin(), there.begin() + middle, there.end());
        there.erase(std::unique(there.begin(), there.end()), there.end());
      }
      task.last = i + 1;
      task.cost += cost;
    }
    found.push_back(task);
  }
  return found;
}

void Kernel::touched(const Reacher& reacher, const Holes& of, const Hole& hole, Reach& reach,
                     std::span<const std::int64_t> units, std::vector<std::int64_t>& found) const {
  const auto take = [&] {
    for (const PanelSegment& each : reach.segments)
      found.push_back(units.empty() ? each.record : units[std::size_t(each.record)]);
  };
  if (is_line(of.part)) {
    reach.clear(0, of.irrep);
    reacher.add_line(of, hole, 0, reach);
    take();
  } else {
    for (int g = 0; g < space_->externals().groups(); ++g) {
      reacher.find(of, hole, g, reach);
      take();
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
}

std::vector<std::int64_t> Kernel::units_of(const HoleTask& task, std::span<const std::int64_t> units) const {
  const Holes& of = holes_.at(std::size_t(task.holes));
  const Reacher reacher(*space_, pairs_);
  Reach reach;
  std::vector<std::int64_t> found, more;
  std::vector<bool> there(units.empty() ? space_->records().size() : std::size_t(units.back() + 1));
  for (std::int64_t i = task.first; i < task.last; ++i) {
    more.clear();
    touched(reacher, of, of.holes.at(std::size_t(i)), reach, units, more);
    for (std::int64_t each : more)
      if (!there[std::size_t(each)]) {
        there[std::size_t(each)] = true;
        found.push_back(each);
      }
  }
  std::sort(found.begin(), found.end());
  return found;
}

void Kernel::apply(const HoleTask& task, std::span<const double> x, std::span<double> t,
                   std::span<const std::int64_t> offsets, bool shared) const {
  const Holes& of = holes_.at(std::size_t(task.holes));
  if (task.first < 0 || task.last > std::int64_t(of.holes.size())) throw std::out_of_range("holes of a task");
  Worker worker(*this, x, t, offsets, shared);
  if (is_line(of.part)) {
    worker.lines(of, task.first, task.last);
    return;
  }
  for (std::int64_t i = task.first; i < task.last; ++i) worker.spectators(of, of.holes[std::size_t(i)]);
}

// ---- products ----

void Kernel::Worker::lines(const Holes& of, std::int64_t first, std::int64_t last) {
  const bool opposite = of.part == Part::opposite;
  const auto at = std::size_t(of.irrep);
  const std::int64_t length = kernel_.length_of(of);
  if (length == 0) return;
  const std::int64_t batch = std::clamp<std::int64_t>(
      kernel_.batch_elements() / length, 1, kernel_.externals_.on_disk() ? max_disk_lines : max_lines);
  for (std::int64_t begin = first; begin < last; begin += batch) {
    const std::int64_t count = std::min(batch, last - begin);
    d_.assign(std::size_t(count * length), 0.0);
    e_.resize(std::size_t(count * length));
    reach_.clear(int(length), of.irrep);
    for (std::int64_t i = 0; i < count; ++i)
      reacher_.add_line(of, of.holes[std::size_t(begin + i)], i * length, reach_);
    gather_all(d_.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const Hole& hole = of.holes[std::size_t(begin + i)];
      if (!opposite || space_.parity() == 0 || hole.first != hole.second) continue;
      for (std::int64_t j = i * length; j < (i + 1) * length; ++j) d_[std::size_t(j)] *= 0.5;
    }
    if (opposite) {
      multiply_mixed(kernel_.pairs_.opposite[at], int(count));
      add_external(kernel_.pairs_.opposite[at], int(count));
    } else {
      multiply_mixed(kernel_.pairs_.same[at], int(count));
      add_external(kernel_.pairs_.same[at], int(count));
    }
    scatter_all(e_.data());
  }
}

/// Everything except the part from external pairs to external pairs.
template <class Pairs>
void Kernel::Worker::multiply_mixed(const Pairs& pairs, int lines) {
  const Blas& blas = kernel_.blas_;
  const int mixed = pairs.mixed, external = pairs.external, length = mixed + external;
  if (mixed > 0)
    blas.multiply<double>(lines, mixed, mixed, d_.data(), length, pairs.matrix.data(), mixed, e_.data(),
                          length);
  if (external == 0) return;
  if (mixed > 0) {
    blas.add_products<double>(lines, mixed, external, d_.data() + mixed, length, pairs.to_external.data(),
                              external, e_.data(), length);
    blas.multiply<double>(lines, external, mixed, d_.data(), length, pairs.to_external.data(), external,
                          e_.data() + mixed, length);
  } else {
    std::fill(e_.begin(), e_.begin() + std::ptrdiff_t(lines) * length, 0.0);
  }
}

/// Twice the integrals of differences, without their spin shift.
void Kernel::Worker::add_external(const EqualPairs& pairs, int lines) {
  const int external = pairs.external, length = pairs.mixed + external;
  if (external == 0) return;
  const Integrals& v = kernel_.integrals_;
  const double shift =
      v.spin_shift == 0 ? 0 : v.spin_shift * (1 + 1.0 / std::max(v.alpha_electrons, v.beta_electrons));
  odd_product_.resize(std::size_t(lines) * std::size_t(external));
  kernel_.externals_.multiply(kernel_.externals_.odd(pairs.irrep), kernel_.blas_, lines,
                              d_.data() + pairs.mixed, length, odd_product_.data(), external, slabs_);
  for (int line = 0; line < lines; ++line) {
    const double* const d = d_.data() + std::ptrdiff_t(line) * length + pairs.mixed;
    double* const e = e_.data() + std::ptrdiff_t(line) * length + pairs.mixed;
    const double* const product = odd_product_.data() + std::ptrdiff_t(line) * external;
    for (int i = 0; i < external; ++i) e[i] += 2 * product[i] - shift * d[i];
  }
}

/// Sums and differences of external pairs, which have separate, smaller tables of integrals.
void Kernel::Worker::add_external(const OppositePairs& pairs, int lines) {
  if (pairs.external == 0) return;
  const ExternalTables& tables = kernel_.externals_;
  const ExternalTables::Table &of_sums = tables.even(pairs.irrep), &of_differences = tables.odd(pairs.irrep);
  const Externals& externals = space_.externals();
  const int length = pairs.mixed + pairs.external;
  even_.resize(std::size_t(lines) * std::size_t(of_sums.size));
  odd_.resize(std::size_t(lines) * std::size_t(of_differences.size));
  even_product_.resize(even_.size());
  odd_product_.resize(odd_.size());
  // Calls each(here, there, even, odd) for pairs c >= d: positions in a line, and in lines of sums and
  // differences.
  const auto each_pair = [&](const auto& each) {
    std::int64_t even = 0, odd = 0;
    for (int g = 0; g < externals.groups(); ++g) {
      const int h = g ^ pairs.irrep;
      if (h > g) continue;
      const int m = externals.count(g), n = externals.count(h);
      const std::int64_t here = externals.mixed(pairs.irrep, g), there = externals.mixed(pairs.irrep, h);
      for (int c = 0; c < m; ++c)
        for (int d = 0; d < (g == h ? c + 1 : n); ++d) {
          const bool equal = g == h && c == d;
          each(here + std::int64_t(c) * n + d, there + std::int64_t(d) * m + c, even++, equal ? -1 : odd++);
        }
    }
  };
  for (int line = 0; line < lines; ++line) {
    const double* const d = d_.data() + std::int64_t(line) * length + pairs.mixed;
    double* const sums = even_.data() + std::int64_t(line) * of_sums.size;
    double* const differences = odd_.data() + std::int64_t(line) * of_differences.size;
    each_pair([&](std::int64_t here, std::int64_t there, std::int64_t even, std::int64_t odd) {
      sums[even] = d[here] + d[there];
      if (odd >= 0) differences[odd] = d[here] - d[there];
    });
  }
  tables.multiply(of_sums, kernel_.blas_, lines, even_.data(), of_sums.size, even_product_.data(),
                  of_sums.size, slabs_);
  tables.multiply(of_differences, kernel_.blas_, lines, odd_.data(), of_differences.size, odd_product_.data(),
                  of_differences.size, slabs_);
  for (int line = 0; line < lines; ++line) {
    double* const e = e_.data() + std::int64_t(line) * length + pairs.mixed;
    const double* const sums = even_product_.data() + std::int64_t(line) * of_sums.size;
    const double* const differences = odd_product_.data() + std::int64_t(line) * of_differences.size;
    each_pair([&](std::int64_t here, std::int64_t there, std::int64_t even, std::int64_t odd) {
      if (odd < 0) {
        e[here] += sums[even];
      } else {
        e[here] += sums[even] + differences[odd];
        e[there] += sums[even] - differences[odd];
      }
    });
  }
}

void Kernel::Worker::spectators(const Holes& of, const Hole& hole) {
  for (int g = 0; g < space_.externals().groups(); ++g) {
    reacher_.find(of, hole, g, reach_);
    if (reach_.row_count == 0) continue;
    const int rows = reach_.row_count, columns = reach_.columns;
    const auto size = std::size_t(rows) * std::size_t(columns);
    if (d_.size() < size) d_.resize(size);
    if (e_.size() < size) e_.resize(size);
    gather_all(d_.data());
    if (of.part == Part::opposite_both && space_.parity() != 0 && hole.first == hole.second)
      for (std::size_t i = 0; i < size; ++i) d_[i] *= 0.5;
    const auto at = std::size_t(reach_.irrep);
    const bool opposite = is_opposite(of.part);
    const OppositePairs& mixed = kernel_.pairs_.opposite[at];
    const EqualPairs& same = kernel_.pairs_.same[at];
    const double* const matrix = opposite ? mixed.matrix.data() : same.matrix.data();
    const auto width = std::size_t(opposite ? mixed.mixed : same.mixed);
    part_.resize(std::size_t(rows) * std::size_t(rows));
    double* to = part_.data();
    for (const Rows& from : reach_.rows)
      for (int r = 0; r < from.count; ++r) {
        const double* const row = matrix + std::size_t(from.first + r) * width;
        for (const Rows& each : reach_.rows) {
          std::copy_n(row + each.first, each.count, to);
          to += each.count;
        }
      }
    kernel_.blas_.multiply<double>(rows, columns, rows, part_.data(), rows, d_.data(), columns, e_.data(),
                                   columns);
    scatter_all(e_.data());
  }
}

}  // namespace outcore::chem::mrci
