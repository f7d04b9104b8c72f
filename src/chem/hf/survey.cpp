#include "chem/hf/survey.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "chem/hf/packing.hpp"
#include "store/checksum.hpp"

namespace outcore::chem {
namespace {

constexpr std::size_t max_shells = 64;  // of a triple's list that are measured

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr std::size_t record_bytes = 4 << 20;
constexpr double interrupted = 3;  // times as long as a repetition: another process had the processor

struct Times {
  double first, again;
  /// As in a run, in which each is done once.
  [[nodiscard]] double once() const { return first < interrupted * again ? first : again; }
};

/// Times of a piece of work that can be repeated. `again` has few interruptions, and finds in the cache the
/// data that its predecessor in a run would have left there.
template <class Work>
Times time_of(Work&& work) {
  double seconds[3];
  for (double& each : seconds) {
    const auto start = Clock::now();
    work();
    each = seconds_since(start);
  }
  return {seconds[0], std::min(seconds[1], seconds[2])};
}

/// Position of a draw in [0, 1): multiples of the golden section cover the interval evenly for any number of
/// draws.
double position(std::uint64_t number) {
  const double at = (double(number) + 0.5) * 0.6180339887498949;
  return at - std::floor(at);
}

}  // namespace

Surveyor::Surveyor(const Basis& basis, const Screening& screening, const Accuracy& accuracy,
                   const Densities& density)
    : basis_(basis),
      screening_(screening),
      maker_(basis, screening),
      codec_(accuracy),
      density_(density.bounds(basis)),
      sums_(basis, density) {
  std::uint64_t sum = 0;
  for (const auto& task : screening.tasks()) until_.push_back(sum += task.integrals);
}

Survey Surveyor::run(double seconds, std::uint64_t most, std::uint64_t first, std::uint64_t stride) {
  Survey survey;
  if (until_.empty()) return survey;
  record_.clear();
  alone_seconds_ = 0;
  const auto start = Clock::now();
  do {
    measure(draw(first + survey.draws * stride), survey);
    ++survey.draws;
  } while (survey.draws < most && seconds_since(start) < seconds);
  if (alone_seconds_ > 0) {
    survey.unpack_seconds =
        survey.contract_seconds * time_of([&] { read_record([](const Slab&) {}); }).once() / alone_seconds_;
    survey.contract_seconds *=
        time_of([&] { read_record([&](const Slab& slab) { sums_.add(slab); }); }).once() / alone_seconds_;
  }
  return survey;
}

/// As in a pass: the packed slab is not in the cache, nor are the rows of the results.
template <class Use>
void Surveyor::read_record(Use&& use) {
  checked_ = store::crc32c(record_);
  Slab slab;
  for (std::size_t at = 0; at < record_.size();) {
    at += SlabCodec::unpack(basis_, record_.data() + at, record_.size() - at, slab);
    use(slab);
  }
}

Surveyor::Triple Surveyor::draw(std::uint64_t number) const {
  const double total = double(until_.back());
  const double at = position(number) * total;
  const auto found =
      std::size_t(std::upper_bound(until_.begin(), until_.end() - 1, at,
                                   [](double x, std::uint64_t end) { return x < double(end); }) -
                  until_.begin());
  Triple triple{.task = &screening_.tasks()[found], .k = 0, .share = 0, .quartets = {}};
  const auto& [i, j, integrals] = *triple.task;
  const auto rare = screening_.rare(i, j);
  double left = at - double(until_[found] - integrals);
  for (triple.k = 0;; ++triple.k) {
    triple.quartets.clear();
    std::uint64_t columns = 0;
    screening_.quartets(i, j, triple.k, rare, 0, [&](const Screening::Quartet& quartet, double) {
      triple.quartets.push_back(quartet);
      columns += std::uint64_t(basis_.size(quartet.l));
    });
    const auto size =
        double(columns * std::uint64_t(basis_.size(i) * basis_.size(j) * basis_.size(triple.k)));
    triple.share = size / total;
    left -= size;
    if (left < 0 || triple.k == i) break;
  }
  if (triple.quartets.empty()) triple.share = 1;  // the end of the interval, by rounding
  return triple;
}

void Surveyor::measure(const Triple& triple, Survey& survey) {
  const auto& task = *triple.task;
  const std::size_t all = triple.quartets.size(), count = std::min(all, max_shells);
  std::vector<Screening::Quartet> chosen;
  for (std::size_t n = 0; n < count; ++n) chosen.push_back(triple.quartets[(2 * n + 1) * all / (2 * count)]);
  const double weight = double(all) / double(std::max<std::size_t>(1, count)) / triple.share;

  const auto pack = [&](const Slab& slab) {
    packed_.resize(SlabCodec::packed_bound(slab));
    return codec_.pack(basis_, slab, packed_.data());
  };
  const std::size_t before = survey.quartets.size();
  double bytes_apart = 0;
  for (const auto& quartet : chosen) {
    const int l = quartet.l;
    const double seconds = time_of([&] { maker_.make(task, triple.k, {&quartet, 1}); }).once();
    const Slab& slab = maker_.make(task, triple.k, {&quartet, 1});
    const double bytes = slab.shells.empty() ? 0.0 : double(pack(slab));
    survey.quartets.push_back(
        {int(pair_of_kinds(basis_.kind(task.i), basis_.kind(task.j))),
         int(pair_of_kinds(basis_.kind(triple.k), basis_.kind(l))),
         quartet.copies * quartet.weight * screening_.bound(task.i, task.j) * screening_.bound(triple.k, l),
         std::max({2 * density_.at(task.i, task.j), 2 * density_.at(triple.k, l),
                   density_.at(task.i, triple.k), density_.at(task.j, triple.k), density_.at(task.i, l),
                   density_.at(task.j, l)}) /
             quartet.copies,
         double(basis_.size(task.i) * basis_.size(task.j) * basis_.size(triple.k) * basis_.size(l)), seconds,
         bytes, weight});
    bytes_apart += bytes;
  }

  Slab slab = maker_.make(task, triple.k, chosen);
  if (slab.shells.empty()) return;
  const double values = double(slab.rows() * slab.columns.size());
  survey.pack_seconds += time_of([&] { pack(slab); }).once() / values;
  const std::size_t bytes = pack(slab);
  for (std::size_t at = before; at < survey.quartets.size();
       ++at)  // in a record, quartets share the header of a slab
    if (bytes_apart > 0) survey.quartets[at].bytes *= double(bytes) / bytes_apart;
  if (bytes == 0) return;
  const double alone = time_of([&] {
                         SlabCodec::unpack(basis_, packed_.data(), bytes, slab);
                         sums_.add(slab);
                       }).again;
  survey.contract_seconds += alone / values;
  if (record_.size() + bytes > record_bytes) return;
  record_.insert(record_.end(), packed_.data(), packed_.data() + bytes);
  alone_seconds_ += alone;
}

}  // namespace outcore::chem
