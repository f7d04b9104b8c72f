#include "chem/hf/two_electron.hpp"

#include <algorithm>
#include <cerrno>
#include <tuple>

#include "base/thread_team.hpp"
#include "outcore/error.hpp"

namespace outcore::chem {
namespace {

Error misuse(const char* what) {
  return Error(EINVAL, {.attempted = "two-electron integrals", .detail = what});
}

}  // namespace

TwoElectron::TwoElectron(std::shared_ptr<const Basis> basis, std::shared_ptr<const Screening> screening,
                         std::shared_ptr<const KeepRule> rule, int threads)
    : basis_(std::move(basis)), screening_(std::move(screening)), rule_(std::move(rule)) {
  if (threads < 1) throw misuse("at least one thread is needed");
  for (int t = 0; t < threads; ++t) makers_.emplace_back(*basis_, *screening_);
}

Selection TwoElectron::selection(Selection::Quartets quartets) const {
  return {.rule = rule_.get(),
          .quartets = rule_->keeps_all() && quartets == Selection::Quartets::kept ? Selection::Quartets::all
                                                                                  : quartets,
          .density = bounds_.threshold > 0 ? &bounds_ : nullptr,
          .small_below = small_below_};
}

void TwoElectron::open_store(const IntegralFileOptions& options) {
  if (file_) throw misuse("the store is open already");
  file_ = std::make_unique<IntegralFile>(*basis_, options);
  prepare(options);
  for (std::size_t t = 0; t < makers_.size(); ++t)
    writers_.push_back(std::make_unique<IntegralFile::Writer>(*file_));
}

void TwoElectron::prepare(const IntegralFileOptions& options) {
  small_below_ = options.small_below;
  accuracy_ = options.accuracy;
  for (SlabMaker& maker : makers_) maker.limit(options.record_bytes / 16);  // so that a record holds several
}

void TwoElectron::open_kept(const IntegralFileOptions& options, std::span<const KeptFile> kept, int part,
                            int parts) {
  if (file_) throw misuse("the store is open already");
  file_ = std::make_unique<IntegralFile>(*basis_, options, kept, screening_->tasks().size(), part, parts);
  prepare(options);
  collect(file_->lost(), lost_);
}

KeptFile TwoElectron::commit() {
  if (!file_ || !writers_.empty()) throw misuse("the store has not been written");
  return file_->commit();
}

std::vector<std::byte> TwoElectron::index() const {
  if (!file_ || !writers_.empty()) throw misuse("the store has not been written");
  return file_->index();
}

void TwoElectron::share(std::span<const std::vector<std::byte>> indices) {
  if (!file_ || !writers_.empty()) throw misuse("the store has not been written");
  file_->share(indices);
}

void TwoElectron::drop() {
  if (file_) file_->drop();
  file_.reset();
  lost_.clear();
}

void TwoElectron::store(int thread, std::size_t first_task, std::size_t last_task) {
  if (writers_.empty()) throw misuse("the store is not open for writing");
  const auto t = std::size_t(thread);
  const auto& tasks = screening_->tasks();
  auto wanted = selection(Selection::Quartets::kept);
  wanted.density = nullptr;
  for (std::size_t at = first_task; at < std::min(last_task, tasks.size()); ++at) {
    if (file_->full()) {
      file_->lose(std::uint32_t(at));
      continue;
    }
    writers_[t]->begin(std::uint32_t(at));
    makers_[t].run(tasks[at], wanted, [&](const Slab& slab) { writers_[t]->add(slab); });
  }
}

void TwoElectron::close_store() {
  for (auto& writer : writers_) writer->finish();
  writers_.clear();
  collect(file_->lost(), lost_);
}

void TwoElectron::begin(const double* densities, std::span<const int> symmetry, double threshold) {
  if (!writers_.empty()) throw misuse("the store is still being written");
  sums_.clear();
  densities_ = std::make_unique<Densities>(*basis_, densities, symmetry);
  for (std::size_t t = 0; t < makers_.size(); ++t)
    sums_.push_back(std::make_unique<CoulombExchange>(*basis_, *densities_));
  bounds_ = threshold > 0 ? densities_->bounds(*basis_) : DensityBounds{};
  bounds_.threshold = threshold;
}

void TwoElectron::contract_kept(const Tickets& tickets) {
  if (sums_.empty()) throw misuse("no densities are given");
  if (!file_) return;
  const double least = bounds_.threshold > 0 ? bounds_.threshold / std::max(2 * bounds_.overall, 1e-300) : 0;
  const auto add = [&](int thread, const Slab& slab) { sums_[std::size_t(thread)]->add(slab); };
  file_->for_each(threads(), add, least, tickets);
  std::vector<Lost> damaged;
  collect(file_->take_damaged(), damaged);
  for_lost(lost_, add);
  for_lost(damaged, add);
}

void TwoElectron::contract_rest(int thread, std::size_t first_task, std::size_t last_task) {
  if (sums_.empty()) throw misuse("no densities are given");
  const auto t = std::size_t(thread);
  const auto& tasks = screening_->tasks();
  const auto wanted = selection(Selection::Quartets::rest);
  for (std::size_t at = first_task; at < std::min(last_task, tasks.size()); ++at)
    makers_[t].run(tasks[at], wanted, [&](const Slab& slab) { sums_[t]->add(slab); });
}

void TwoElectron::end(double* coulomb, double* exchange) {
  if (sums_.empty()) throw misuse("no densities are given");
  for (std::size_t t = 1; t < sums_.size(); ++t) sums_[0]->add(*sums_[t]);
  sums_[0]->finish(1.0, coulomb, exchange);
  sums_.clear();
  densities_.reset();
}

EnergyError TwoElectron::energy_error(const double* densities, std::size_t count, const Tickets& tasks,
                                      const Tickets& tickets) {
  const Densities internal(*basis_, densities, std::vector<int>(count, 1));
  std::vector<EnergyError> errors(makers_.size(), EnergyError(*basis_, internal, accuracy_));
  const auto add = [&](int thread, const Slab& slab) { errors[std::size_t(thread)].add(slab); };
  bounds_.threshold = 0;  // for_lost and later passes: independent of the density of the pass before
  if (file_) {
    file_->for_each(threads(), add, 0, tickets);
    std::vector<Lost> damaged;
    collect(file_->take_damaged(), damaged);
    for_lost(lost_, add);
    for_lost(damaged, add);
  }
  auto wanted = selection(Selection::Quartets::rest);
  wanted.at_random = true;  // the others are exact
  const auto& all = screening_->tasks();
  if (!rule_->keeps_all())
    in_threads([&](int thread) {
      for (std::uint64_t at; (at = tasks()) < all.size();)
        makers_[std::size_t(thread)].run(all[at], wanted, [&](const Slab& slab) { add(thread, slab); });
    });
  for (std::size_t t = 1; t < errors.size(); ++t) errors[0].add(errors[t]);
  return errors[0];
}

/// By task, each once.
void TwoElectron::collect(std::span<const SlabRange> found, std::vector<Lost>& lost) {
  for (const SlabRange& range : found) {
    const auto at = std::lower_bound(lost.begin(), lost.end(), range.task,
                                     [](const Lost& a, std::uint32_t task) { return a.task < task; });
    const auto place = at != lost.end() && at->task == range.task
                           ? at
                           : lost.insert(at, {.task = range.task, .whole = {}, .ranges = {}});
    if (range.whole)
      place->whole[range.small ? 1 : 0] = true;
    else
      place->ranges.push_back(range);
  }
}

void TwoElectron::for_lost(std::span<const Lost> lost, const Consume& consume) {
  std::atomic<std::size_t> next{0};
  in_threads([&](int thread) {
    for (std::size_t at; (at = next.fetch_add(1)) < lost.size();) for_lost(thread, lost[at], consume);
  });
}

// Finds parts of the large or small slabs of a task by counting, so all slabs must be made.
void TwoElectron::for_lost(int thread, const Lost& lost, const Consume& consume) {
  auto wanted = selection(Selection::Quartets::kept);
  if (!lost.ranges.empty()) wanted.density = nullptr;
  std::uint32_t number[2] = {0, 0};
  makers_[std::size_t(thread)].run(screening_->tasks()[lost.task], wanted, [&](const Slab& slab) {
    const auto n = number[slab.small ? 1 : 0]++;
    const auto covers = [&](const SlabRange& range) {
      return range.small == slab.small && n >= range.first && n - range.first < range.count;
    };
    if (lost.whole[slab.small ? 1 : 0] || std::any_of(lost.ranges.begin(), lost.ranges.end(), covers))
      consume(thread, slab);
  });
}

void TwoElectron::in_threads(const std::function<void(int)>& work) const {
  in_team(threads(), work);
}

IntegralCounts TwoElectron::counts() const {
  IntegralCounts counts;
  for (const auto& maker : makers_) {
    counts.quartets += maker.quartets();
    counts.computed += maker.integrals();
  }
  if (file_) {
    counts.stored = file_->integrals();
    counts.memory_bytes = std::uint64_t(file_->memory_bytes());
    counts.disk_bytes = std::uint64_t(file_->disk_bytes());
    counts.records = file_->records();
    counts.damaged = file_->damaged();
  }
  counts.lost_tasks = lost_.size();
  return counts;
}

}  // namespace outcore::chem
