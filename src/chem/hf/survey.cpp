#include "chem/hf/survey.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>

#include "chem/hf/packing.hpp"
#include "store/checksum.hpp"

namespace outcore::chem {
namespace {

constexpr std::size_t max_shells = 64;    // of a triple's list that are measured together
constexpr std::size_t max_quartets = 16;  // of these that are measured each
constexpr double header_bytes = sizeof(PackedSlab) + packed_alignment / 2;
constexpr double patience = 3;          // times as long as asked for, if others have the processor
constexpr double looking_share = 0.05;  // of the time
constexpr double least_share = 1e-12;   // of a bound: such a component is none
constexpr double any_bound = 1e-9;      // small quartets are put aside, whatever that is

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Time that this thread has had the processor: whatever else the machine does.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// What looking at that clock takes.
double looking_seconds() {
  double least = HUGE_VAL;
  for (int n = 0; n < 20; ++n) {
    const double start = processor_seconds();
    least = std::min(least, processor_seconds() - start);
  }
  return least;
}

constexpr std::size_t record_bytes = 4 << 20;
constexpr double interrupted = 3;  // times as long as a repetition: another process had the caches
constexpr double shortest = 1e-9;  // seconds, that anything takes

struct Times {
  double first, again;
  /// As in a run, in which each is done once.
  [[nodiscard]] double once() const { return first < interrupted * again ? first : again; }
};

/// Processor times of a piece of work that can be repeated. `again`, the shortest repetition, finds in the
/// cache the data that its predecessor in a run would have left there.
template <int runs = 3, class Work>
Times time_of(Work&& work) {
  static const double looking = looking_seconds();
  double seconds[runs];
  for (double& each : seconds) {
    const double start = processor_seconds();
    work();
    each = std::max(processor_seconds() - start - looking, shortest);
  }
  return {seconds[0], *std::min_element(seconds + 1, seconds + runs)};
}

std::vector<Screening::Quartet> evenly(std::span<const Screening::Quartet> all, std::size_t most) {
  const std::size_t count = std::min(all.size(), most);
  std::vector<Screening::Quartet> some;
  for (std::size_t n = 0; n < count; ++n) some.push_back(all[(2 * n + 1) * all.size() / (2 * count)]);
  return some;
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
      sums_(basis, density),
      asked_(basis, std::vector<double>(pair_of_kinds(basis.kinds(), 0), 1.0), {1.0}, 0, 2.0),
      work_(basis.work_size()) {
  const auto n = std::size_t(basis.largest_shell());
  block_.resize(n * n * n * n);
  std::uint64_t sum = 0;
  for (const auto& task : screening.tasks()) until_.push_back(sum += task.integrals);
}

Survey Surveyor::run(double seconds, std::uint64_t most, std::uint64_t first, std::uint64_t stride) {
  Survey survey;
  if (until_.empty()) return survey;
  record_.clear();
  alone_seconds_ = 0;
  const auto start = Clock::now();
  const double begun = processor_seconds();
  const auto taken = [&] { return std::max(processor_seconds() - begun, seconds_since(start) / patience); };
  do {
    measure(draw(first + survey.draws * stride), survey);
    ++survey.draws;
    if (survey.look_seconds <= looking_share * taken()) look(first + survey.looked * stride, survey);
  } while (survey.draws < most && taken() < seconds);
  if (alone_seconds_ > 0) {
    survey.unpack_seconds = survey.contract_seconds *
                            time_of<5>([&] { read_record([](const Slab&) {}); }).once() / alone_seconds_;
    packed_.resize(record_.size());
    survey.byte_seconds =
        time_of([&] { std::ranges::copy(record_, packed_.begin()); }).once() / double(record_.size());
    survey.contract_seconds *=
        time_of<5>([&] { read_record([&](const Slab& slab) { sums_.add(slab); }); }).once() / alone_seconds_;
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
  auto quartets = evenly(triple.quartets, max_shells);
  if (quartets.empty()) return;
  // As in a pass: the code and the pair i, j are warm from the slab before, the quartets are new.
  maker_.make(task, triple.k, {quartets.data(), 1});
  const Slab* made = nullptr;
  const double seconds = time_of<2>([&] { made = &maker_.make(task, triple.k, quartets); }).once();
  Slab slab = *made;
  // A slab has no more than fit into it; none if all are zero.
  if (!slab.shells.empty()) quartets.resize(slab.shells.size());
  std::size_t bytes = 0;
  const double values = double(slab.rows() * slab.columns.size());
  if (!slab.shells.empty()) survey.pack_seconds += time_of([&] { bytes = pack(slab); }).once() / values;

  const auto some = evenly(quartets, max_quartets);
  const double header = bytes == 0 ? 0.0 : header_bytes;
  const double weight = double(triple.quartets.size()) / double(some.size()) / triple.share;
  const std::size_t before = survey.quartets.size();
  for (const auto& quartet : some) {
    survey.quartets.push_back(measure(task, quartet, weight));
    survey.quartets.back().header = header / double(triple.quartets.size());
    survey.quartets.back().draw = survey.draws;
  }
  // Each has its share of what all take together.
  const auto scale = [&](double SurveyedQuartet::* what, double of_all) {
    const std::span measured = std::span(survey.quartets).subspan(before);
    double apart = 0;
    for (const auto& each : measured) apart += each.*what;
    const double together = of_all * double(some.size()) / double(quartets.size());
    if (apart > 0)
      for (auto& each : measured) each.*what *= together / apart;
  };
  scale(&SurveyedQuartet::seconds, seconds);
  scale(&SurveyedQuartet::bytes, double(bytes) - header);
  if (bytes == 0) return;
  pack(slab);
  const double alone = time_of([&] {
                         SlabCodec::unpack(basis_, packed_.data(), bytes, slab);
                         sums_.add(slab);
                       }).again;
  survey.contract_seconds += alone / values;
  if (record_.size() + bytes > record_bytes) return;
  record_.insert(record_.end(), packed_.data(), packed_.data() + bytes);
  alone_seconds_ += alone;
}

SurveyedQuartet Surveyor::measure(const Screening::Task& task, const Screening::Quartet& quartet,
                                  double weight) {
  const auto [i, j, integrals] = task;
  const auto [k, l, copies, factor] = quartet;
  const auto [seconds, share] = compute(task, quartet);
  const Slab& alone = maker_.make(task, k, {&quartet, 1});
  const double density = std::max({2 * density_.at(i, j), 2 * density_.at(k, l), density_.at(i, k),
                                   density_.at(j, k), density_.at(i, l), density_.at(j, l)});
  return {int(pair_of_kinds(basis_.kind(i), basis_.kind(j))),
          int(pair_of_kinds(basis_.kind(k), basis_.kind(l))),
          copies * factor * screening_.bound(i, j) * screening_.bound(k, l),
          density / copies * share,
          double(basis_.size(i) * basis_.size(j) * basis_.size(k) * basis_.size(l)),
          seconds,
          alone.shells.empty() ? 0.0 : double(pack(alone)),
          weight,
          0.0,
          0};
}

std::size_t Surveyor::pack(const Slab& slab) {
  packed_.resize(SlabCodec::packed_bound(slab));
  return codec_.pack(basis_, slab, packed_.data());
}

Surveyor::Computed Surveyor::compute(const Screening::Task& task, const Screening::Quartet& quartet) {
  double seconds = 0, logs = 0;
  const double of_shells = screening_.bound(task.i, task.j) * screening_.bound(quartet.k, quartet.l);
  for (const auto& a : basis_.components(task.i))
    for (const auto& b : basis_.components(task.j))
      for (const auto& c : basis_.components(quartet.k))
        for (const auto& d : basis_.components(quartet.l)) {
          const double each =
              time_of<2>([&] {
                basis_.integrals(d.number, c.number, b.number, a.number, block_.data(), work_.data());
              }).once();
          const double bound =
              screening_.component_bound(a.number, b.number) * screening_.component_bound(c.number, d.number);
          seconds += each;
          logs += each * std::log(std::max(bound / of_shells, least_share));
        }
  return {seconds, std::exp(logs / seconds)};
}

void Surveyor::look(std::uint64_t number, Survey& survey) {
  const auto& tasks = screening_.tasks();
  const auto& task = tasks[std::size_t(position(number) * double(tasks.size()))];
  const Selection rest{
      .rule = &asked_, .quartets = Selection::Quartets::rest, .density = &density_, .small_below = any_bound};
  const double seconds = time_of<2>([&] { looked_ = maker_.count(task, rest); }).once();
  survey.look_seconds += seconds;
  survey.look_squares += seconds * seconds;
  ++survey.looked;
}

}  // namespace outcore::chem
