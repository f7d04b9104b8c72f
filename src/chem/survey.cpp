#include "outcore/chem/survey.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "chem/packing.hpp"

namespace outcore::chem {
namespace {

constexpr std::size_t most_shells = 64;  // of a triple's list that are measured

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Position of a draw in [0, 1): multiples of the golden section cover the interval evenly for any number of
/// draws.
double position(std::uint64_t number) {
  const double at = (double(number) + 0.5) * 0.6180339887498949;
  return at - std::floor(at);
}

}  // namespace

Surveyor::Surveyor(const Basis& basis, const Screening& screening, const Accuracy& accuracy)
    : basis_(basis),
      screening_(screening),
      maker_(basis, screening),
      codec_(accuracy),
      nothing_(basis,
               std::vector<double>(std::size_t(basis.functions()) * std::size_t(basis.functions())).data(),
               std::vector<int>{1}),
      sums_(basis, nothing_) {
  std::uint64_t sum = 0;
  for (const auto& task : screening.tasks()) until_.push_back(sum += task.integrals);
}

Survey Surveyor::run(double seconds, std::uint64_t most, std::uint64_t first, std::uint64_t stride) {
  Survey survey;
  if (until_.empty()) return survey;
  const auto start = Clock::now();
  do {
    measure(draw(first + survey.draws * stride), survey);
    ++survey.draws;
  } while (survey.draws < most && seconds_since(start) < seconds);
  return survey;
}

Surveyor::Triple Surveyor::draw(std::uint64_t number) const {
  const double total = double(until_.back());
  const double at = position(number) * total;
  const auto found =
      std::size_t(std::upper_bound(until_.begin(), until_.end() - 1, at,
                                   [](double x, std::uint64_t end) { return x < double(end); }) -
                  until_.begin());
  Triple triple{.task = &screening_.tasks()[found], .k = 0, .share = 0, .shells = {}};
  const auto& [i, j, integrals] = *triple.task;
  double left = at - double(until_[found] - integrals);
  for (triple.k = 0;; ++triple.k) {
    triple.shells.clear();
    std::uint64_t columns = 0;
    for (auto l : screening_.partners(triple.k)) {
      const double bound = screening_.bound(i, j) * screening_.bound(triple.k, l);
      if (bound < screening_.threshold()) break;
      if ((triple.k == i && l > j) || bound < screening_.least(i, j, triple.k, l)) continue;
      triple.shells.push_back(l);
      columns += std::uint64_t(basis_.size(l));
    }
    const auto size =
        double(columns * std::uint64_t(basis_.size(i) * basis_.size(j) * basis_.size(triple.k)));
    triple.share = size / total;
    left -= size;
    if (left < 0 || triple.k == i) break;
  }
  if (triple.shells.empty()) triple.share = 1;  // the end of the interval, by rounding
  return triple;
}

void Surveyor::measure(const Triple& triple, Survey& survey) {
  const auto& task = *triple.task;
  const std::size_t all = triple.shells.size(), count = std::min(all, most_shells);
  std::vector<std::uint16_t> chosen;
  for (std::size_t n = 0; n < count; ++n) chosen.push_back(triple.shells[(2 * n + 1) * all / (2 * count)]);
  const double weight = double(all) / double(std::max<std::size_t>(1, count)) / triple.share;

  const auto pack = [&](const Slab& slab) {
    packed_.resize(SlabCodec::packed_bound(slab));
    return codec_.pack(basis_, slab, packed_.data());
  };
  for (auto l : chosen) {
    const auto start = Clock::now();
    const Slab& slab = maker_.make(task, triple.k, {&l, 1});
    const double seconds = seconds_since(start);
    double bytes = slab.shells.empty() ? 0.0 : double(pack(slab));
    if (bytes > 0) bytes -= double(sizeof(PackedSlab)) * (1 - 1 / double(count));  // shared with the others
    survey.quartets.push_back(
        {int(pair_of_kinds(basis_.kind(task.i), basis_.kind(task.j))),
         int(pair_of_kinds(basis_.kind(triple.k), basis_.kind(l))),
         screening_.bound(task.i, task.j) * screening_.bound(triple.k, l),
         double(basis_.size(task.i) * basis_.size(task.j) * basis_.size(triple.k) * basis_.size(l)), seconds,
         bytes, weight});
  }

  if (chosen.empty()) return;
  Slab slab = maker_.make(task, triple.k, chosen);
  if (slab.shells.empty()) return;
  auto start = Clock::now();
  const std::size_t bytes = pack(slab);
  survey.pack_seconds += seconds_since(start);
  if (bytes == 0) return;
  start = Clock::now();
  SlabCodec::unpack(basis_, packed_.data(), bytes, slab);
  sums_.add(slab);
  survey.contract_seconds += seconds_since(start);
  survey.packed_values += double(slab.rows() * slab.columns.size());
}

}  // namespace outcore::chem
