#include "outcore/chem/two_electron.hpp"

#include <algorithm>
#include <cerrno>

#include "outcore/error.hpp"

namespace outcore::chem {
namespace {

Error misuse(const char* what) {
  return Error(EINVAL, {.attempted = "two-electron integrals", .detail = what});
}

}  // namespace

TwoElectron::TwoElectron(std::shared_ptr<const Basis> basis, std::shared_ptr<const Screening> screening,
                         int threads)
    : basis_(std::move(basis)), screening_(std::move(screening)) {
  if (threads < 1) throw misuse("at least one thread is needed");
  for (int t = 0; t < threads; ++t) makers_.emplace_back(*basis_, *screening_);
}

void TwoElectron::open_store(const IntegralFileOptions& options) {
  if (file_) throw misuse("the store is open already");
  file_ = std::make_unique<IntegralFile>(*basis_, options);
  for (SlabMaker& maker : makers_) {
    maker.limit(options.record_bytes / 16);  // so that a record holds several
    writers_.push_back(std::make_unique<IntegralFile::Writer>(*file_));
  }
}

void TwoElectron::store(int thread, std::size_t first_task, std::size_t last_task) {
  if (writers_.empty()) throw misuse("the store is not open for writing");
  const auto t = std::size_t(thread);
  const auto& tasks = screening_->tasks();
  for (std::size_t at = first_task; at < std::min(last_task, tasks.size()); ++at)
    makers_[t].run(tasks[at], nullptr, [&](const Slab& slab) { writers_[t]->add(slab); });
}

void TwoElectron::close_store() {
  for (auto& writer : writers_) {
    writer->finish();
    stored_ += writer->stored_integrals();
  }
  writers_.clear();
}

void TwoElectron::begin(const double* densities, std::span<const int> symmetry) {
  sums_.clear();
  densities_ = std::make_unique<Densities>(*basis_, densities, symmetry);
  for (std::size_t t = 0; t < makers_.size(); ++t)
    sums_.push_back(std::make_unique<CoulombExchange>(*basis_, *densities_));
}

void TwoElectron::contract_stored(const double* densities, std::span<const int> symmetry, double* coulomb,
                                  double* exchange) {
  if (!file_ || !writers_.empty()) throw misuse("the store has not been written");
  begin(densities, symmetry);
  file_->for_each(threads(), [&](int thread, const Slab& slab) { sums_[std::size_t(thread)]->add(slab); });
  sum_up(file_->step(), coulomb, exchange);
}

void TwoElectron::begin_direct(const double* densities, std::span<const int> symmetry) {
  begin(densities, symmetry);
  bounds_ = densities_->bounds(*basis_);
}

void TwoElectron::contract_direct(int thread, std::size_t first_task, std::size_t last_task) {
  if (sums_.empty()) throw misuse("no direct run has begun");
  const auto t = std::size_t(thread);
  const auto& tasks = screening_->tasks();
  for (std::size_t at = first_task; at < std::min(last_task, tasks.size()); ++at)
    makers_[t].run(tasks[at], &bounds_, [&](const Slab& slab) { sums_[t]->add(slab); });
}

void TwoElectron::end_direct(double* coulomb, double* exchange) {
  if (sums_.empty()) throw misuse("no direct run has begun");
  sum_up(1.0, coulomb, exchange);
}

void TwoElectron::sum_up(double scale, double* coulomb, double* exchange) {
  for (std::size_t t = 1; t < sums_.size(); ++t) sums_[0]->add(*sums_[t]);
  sums_[0]->finish(scale, coulomb, exchange);
  sums_.clear();
  densities_.reset();
}

IntegralCounts TwoElectron::counts() const {
  IntegralCounts counts;
  for (const auto& maker : makers_) {
    counts.quartets += maker.quartets();
    counts.computed += maker.integrals();
  }
  counts.stored = stored_;
  if (file_) {
    counts.bytes = std::uint64_t(file_->bytes());
    counts.records = file_->records();
  }
  return counts;
}

}  // namespace outcore::chem
