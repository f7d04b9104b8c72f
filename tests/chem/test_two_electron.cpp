#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <random>

#include "chem/hf/two_electron.hpp"
#include "device/fault.hpp"
#include "model.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using namespace outcore::chem;

namespace {

const std::vector<int> shells{0, 1, 2, 0, 3, 1, 0, 2, 1, 4, 0, 1};

IntegralFileOptions options() {
  IntegralFileOptions result;
  result.record_bytes = 1 << 20;
  result.file.scratch = std::filesystem::temp_directory_path();
  return result;
}

/// Keeps the quartets whose values cost most: about half of them.
std::shared_ptr<const KeepRule> half(const Basis& basis) {
  const auto kinds = std::size_t(basis.kinds());
  std::vector<double> factors;
  for (std::size_t pair = 0; pair < kinds * (kinds + 1) / 2; ++pair) factors.push_back(double(1 + pair % 3));
  return std::make_shared<KeepRule>(basis, factors, std::vector<double>{4, 2, 1}, -10, 4.0);
}

struct Problem {
  explicit Problem(const std::vector<int>& of_shells = shells) : basis(model::basis(of_shells)) {}
  std::shared_ptr<const Basis> basis;
  std::shared_ptr<const Screening> screening = std::make_shared<Screening>(*basis, 1e-10, 1);
  std::shared_ptr<const KeepRule> all = std::make_shared<KeepRule>(true);
  std::size_t n = std::size_t(basis->functions());
  std::vector<double> density = model::density(n, 1);
  model::Matrices expected = model::reference(density, n);
  model::Matrices found{std::vector<double>(n * n), std::vector<double>(n * n)};

  TwoElectron stored(const std::shared_ptr<const KeepRule>& rule,
                     const IntegralFileOptions& with = options()) const {
    TwoElectron integrals(basis, screening, rule, 2);
    integrals.open_store(with);
    integrals.store(0, 0, 10);
    integrals.store(1, 10, screening->tasks().size());
    integrals.close_store();
    return integrals;
  }

  void contract(TwoElectron& integrals, double threshold = 0) {
    integrals.begin(density.data(), std::vector<int>{1}, threshold);
    integrals.contract_kept();
    integrals.contract_rest(0, 0, 7);
    integrals.contract_rest(integrals.threads() - 1, 7, screening->tasks().size());
    integrals.end(found.coulomb.data(), found.exchange.data());
  }

  void check_result(double tolerance = 1e-6) const {
    check::is_true(model::distance(found.coulomb, expected.coulomb) < tolerance, "J differs");
    check::is_true(model::distance(found.exchange, expected.exchange) < tolerance, "K differs");
  }
};

/// Enough slabs for many records, each named by its first value.
struct Filled {
  std::shared_ptr<const Basis> basis = model::basis({4, 4, 4, 4, 4, 4});
  IntegralFile file;
  explicit Filled(int slabs, const IntegralFileOptions& with = options()) : file(*basis, with) {
    IntegralFile::Writer writer(file);
    for (int s = 1; s <= slabs; ++s) {
      writer.begin(std::uint32_t(s));
      Slab slab;
      slab.label(*basis, 5, 4, s % 6);
      slab.shells = {0};
      slab.set_shells(*basis);
      for (std::size_t r = 0; r < slab.rows(); ++r)
        for (std::size_t c = 0; c < slab.columns.size(); ++c) slab.row(r)[c] = s * 1e-6;
      writer.add(slab);
    }
    writer.finish();
  }
};

}  // namespace

TEST("stored integrals give J and K, again and again") {
  Problem p;
  auto integrals = p.stored(p.all);
  for (int pass = 0; pass < 3; ++pass) {
    p.contract(integrals);
    p.check_result();
  }
  check::equal(integrals.counts().computed, p.screening->integrals());
  check::is_true(integrals.counts().records >= 2);
}

TEST("small records hold several slabs each") {
  const std::vector<int> three{0, 1, 2};
  std::vector<int> many;
  for (int atom = 0; atom < 5; ++atom) many.insert(many.end(), three.begin(), three.end());
  Problem p(many);
  auto small = options();
  small.record_bytes = 64 << 10;
  auto integrals = p.stored(p.all, small);
  p.contract(integrals);
  p.check_result();
  const auto counts = integrals.counts();
  check::is_true(counts.disk_bytes / counts.records > small.record_bytes * 3 / 4, "records are nearly full");
}

TEST("recomputed integrals give J and K") {
  Problem p;
  TwoElectron integrals(p.basis, p.screening, std::make_shared<KeepRule>(false), 2);
  p.contract(integrals);
  p.check_result();
}

TEST("kept and recomputed integrals together give J and K, and none is computed in both parts") {
  Problem p;
  auto integrals = p.stored(half(*p.basis));
  const auto kept = integrals.counts().computed;
  check::is_true(kept > p.screening->integrals() / 5 && kept < p.screening->integrals() * 4 / 5);
  p.contract(integrals);
  p.check_result();
  check::equal(integrals.counts().computed, p.screening->integrals());
}

TEST(
    "integrals that are left out because of the density change J and K by no more than the threshold "
    "allows") {
  Problem p;
  for (double& value : p.density) value *= 1e-6;
  p.expected = model::reference(p.density, p.n);
  auto with = options();
  with.small_below = 1.27e-8;
  auto integrals = p.stored(half(*p.basis), with);
  const auto before = integrals.counts().computed;
  p.contract(integrals, 1e-10);
  const auto screened = integrals.counts().computed - before;
  p.check_result(1e-7);
  p.contract(integrals);
  check::is_true(screened < integrals.counts().computed - before - screened, "nothing was left out");
}

TEST("records stay in memory within its budget, the others go to disk") {
  Problem p;
  auto with = options();
  with.memory_bytes = 2 << 20;
  auto integrals = p.stored(p.all, with);
  check::is_true(integrals.counts().memory_bytes > 0 && integrals.counts().memory_bytes <= 2 << 20);
  check::is_true(integrals.counts().disk_bytes > 0);
  p.contract(integrals);
  p.check_result();
}

TEST("what finds no place in either budget is recomputed, whatever part of a task it is") {
  const auto all = std::make_shared<const KeepRule>(true), some = half(*Problem().basis);
  const std::pair<std::shared_ptr<const KeepRule>, std::int64_t> cases[] = {
      {all, 0}, {all, 1 << 20}, {some, 4095}, {some, 2 << 20}};
  for (const auto& [rule, disk] : cases) {
    Problem p;
    auto with = options();
    with.disk_bytes = disk;
    with.small_below = 1.27e-8;
    auto integrals = p.stored(rule, with);
    check::is_true(std::int64_t(integrals.counts().disk_bytes) <= disk);
    for (int pass = 0; pass < 2; ++pass) {
      p.contract(integrals);
      p.check_result();
    }
    check::is_true(integrals.counts().lost_tasks > 0);
  }
}

TEST("a disk that fills up loses records, which are recomputed") {
  Problem p;
  const auto engine = outcore::device::make_fault_engine(outcore::device::make_thread_engine(1),
                                                         {.full_after_bytes = 1'500'000});
  auto with = options();
  with.file.engine = engine.get();
  with.may_overflow = true;
  auto integrals = p.stored(p.all, with);
  p.contract(integrals);
  p.check_result();
  check::is_true(integrals.counts().lost_tasks > 0 && integrals.counts().disk_bytes > 0);
}

TEST("a disk that fills up is an error if everything must be kept") {
  Problem p;
  const auto engine = outcore::device::make_fault_engine(outcore::device::make_thread_engine(1),
                                                         {.full_after_bytes = 1'500'000});
  auto with = options();
  with.file.engine = engine.get();
  check::equal(check::throws<outcore::Error>([&] { p.stored(p.all, with); }).errno_value(), ENOSPC);
}

TEST("damaged records are found, counted and recomputed") {
  using outcore::device::Fault;
  for (const Fault fault : {Fault::bit_flip, Fault::io_error}) {
    Problem p;
    std::atomic<int> reads{0};
    const auto engine = outcore::device::make_fault_engine(
        outcore::device::make_thread_engine(1),
        {.script = [&](std::uint64_t, const outcore::device::Operation& operation) {
          return operation.kind == outcore::device::Operation::Kind::read && reads++ == 1 ? fault
                                                                                          : Fault::none;
        }});
    auto with = options();
    with.file.engine = engine.get();
    auto integrals = p.stored(p.all, with);
    for (int pass = 0; pass < 2; ++pass) {
      p.contract(integrals);
      p.check_result();
    }
    check::equal(integrals.counts().damaged, std::uint64_t{1});
  }
}

/// J and K from `parts` processes, each with its part of the kept files.
void check_kept(Problem& p, const std::shared_ptr<const KeepRule>& rule, const IntegralFileOptions& with,
                const std::vector<KeptFile>& kept, int parts) {
  std::vector<double> j(p.n * p.n), k(p.n * p.n);
  std::ranges::fill(p.found.coulomb, 0.0);
  std::ranges::fill(p.found.exchange, 0.0);
  for (int part = 0; part < parts; ++part) {
    TwoElectron integrals(p.basis, p.screening, rule, 1);
    integrals.open_kept(with, kept, part, parts);
    integrals.begin(p.density.data(), std::vector<int>{1}, 0);
    integrals.contract_kept();
    if (part == 0 && !rule->keeps_all()) integrals.contract_rest(0, 0, p.screening->tasks().size());
    integrals.end(j.data(), k.data());
    for (std::size_t at = 0; at < j.size(); ++at) p.found.coulomb[at] += j[at], p.found.exchange[at] += k[at];
  }
  p.check_result();
}

TEST("what found no place when integrals were kept is recomputed by those that read them, once") {
  for (const std::int64_t disk : {0, 1 << 20}) {
    Problem p;
    auto with = options();
    with.kept_name = "integrals-part." + std::to_string(getpid());
    with.disk_bytes = disk;
    with.small_below = 1.27e-8;
    std::vector<KeptFile> kept;
    {
      auto integrals = p.stored(p.all, with);
      check::is_true(integrals.counts().lost_tasks > 0);
      kept.push_back(integrals.commit());
    }
    for (const int parts : {1, 2, 5}) check_kept(p, p.all, with, kept, parts);
    std::filesystem::remove(with.file.scratch + "/" + with.kept_name);
  }
}

TEST("kept records are read by any number of others, and by none if a file of them is gone") {
  Problem p;
  auto with = options();
  with.kept_name = "integrals-test." + std::to_string(getpid());
  const std::string path = with.file.scratch + "/" + with.kept_name;
  std::vector<KeptFile> kept;
  {
    auto integrals = p.stored(half(*p.basis), with);
    kept.push_back(integrals.commit());
  }
  for (const int parts : {1, 2, 5}) check_kept(p, half(*p.basis), with, kept, parts);
  TwoElectron integrals(p.basis, p.screening, half(*p.basis), 1);
  auto damaged = kept;
  damaged[0].index.resize(damaged[0].index.size() - 3);
  check::equal(check::throws<outcore::Error>([&] { integrals.open_kept(with, damaged, 0, 1); }).errno_value(),
               EIO);
  std::filesystem::remove(path);
  const auto error = check::throws<outcore::Error>([&] { integrals.open_kept(with, kept, 0, 1); });
  check::equal(error.errno_value(), ENOENT);
  check::contains(error.what(), path);
}

TEST("an index that was changed is refused, or leads to records that are not its own, and nowhere else") {
  Problem p;
  auto with = options();
  with.kept_name = "integrals-changed." + std::to_string(getpid());
  with.disk_bytes = 1 << 20;  // something is lost
  std::vector<KeptFile> kept;
  {
    auto integrals = p.stored(p.all, with);
    kept.push_back(integrals.commit());
  }
  std::mt19937_64 random(1);
  int refused = 0;
  std::vector<double> j(p.n * p.n), k(p.n * p.n);
  for (int round = 0; round < 300; ++round) {
    auto changed = kept;
    auto& index = changed[0].index;
    const std::byte extreme[] = {std::byte{0}, std::byte{1}, std::byte{0x7f}, std::byte{0xff}};
    for (std::size_t at = random() % index.size(), count = 1 + random() % 4; count > 0 && at < index.size();
         --count, ++at)
      index[at] = random() % 2 ? extreme[random() % 4] : std::byte(random());
    try {
      TwoElectron integrals(p.basis, p.screening, p.all, 1);
      integrals.open_kept(with, changed, 0, 1);
      integrals.begin(p.density.data(), std::vector<int>{1}, 0);
      integrals.contract_kept();
      integrals.end(j.data(), k.data());
    } catch (const outcore::Error& error) {
      check::is_true(error.errno_value() == EIO);
      ++refused;
    }
  }
  check::is_true(refused > 150);
  std::filesystem::remove(with.file.scratch + "/" + with.kept_name);
}

TEST("records that were to be kept are gone if the run does not get so far") {
  Problem p;
  auto with = options();
  with.kept_name = "integrals-lost." + std::to_string(getpid());
  p.stored(p.all, with);
  check::is_true(!std::filesystem::exists(with.file.scratch + "/" + with.kept_name));
}

TEST("shares of several processes add up") {
  Problem p;
  std::vector<double> j(p.n * p.n), k(p.n * p.n);
  for (std::size_t share = 0; share < 3; ++share) {
    TwoElectron integrals(p.basis, p.screening, p.all, 1);
    integrals.open_store(options());
    for (std::size_t task = share; task < p.screening->tasks().size(); task += 3)
      integrals.store(0, task, task + 1);
    integrals.close_store();
    integrals.begin(p.density.data(), std::vector<int>{1}, 0);
    integrals.contract_kept();
    integrals.end(j.data(), k.data());
    for (std::size_t at = 0; at < j.size(); ++at) p.found.coulomb[at] += j[at], p.found.exchange[at] += k[at];
  }
  p.check_result();
}

TEST("calls out of order are refused") {
  Problem p;
  TwoElectron integrals(p.basis, p.screening, p.all, 1);
  check::throws<outcore::Error>([&] { integrals.contract_kept(); });
  check::throws<outcore::Error>([&] { integrals.store(0, 0, 1); });
  integrals.open_store(options());
  check::throws<outcore::Error>([&] { integrals.begin(p.density.data(), std::vector<int>{1}, 0); });
}

TEST("a pass leaves out records whose bounds are all too small") {
  const auto basis = model::basis({4, 4, 4, 4, 4, 4});
  auto with = options();
  with.small_below = 1.27e-8;
  IntegralFile file(*basis, with);
  IntegralFile::Writer writer(file);
  for (std::uint32_t task = 0; task < 400; ++task) {
    writer.begin(task);
    Slab slab;
    slab.label(*basis, 5, 4, 3);
    slab.shells = {0};
    slab.small = task % 2 == 1;
    slab.bound = slab.small ? 1e-9 : 1e-3;
    slab.set_shells(*basis);
    std::fill(slab.storage.begin(), slab.storage.end(), slab.bound);
    writer.add(slab);
  }
  writer.finish();
  std::atomic<int> all{0}, large{0};
  file.for_each(2, [&](int, const Slab&) { ++all; });
  file.for_each(2, [&](int, const Slab& slab) { large += slab.row(0)[0] > 1e-5 ? 1 : -400; }, 1e-6);
  check::equal(all.load(), 400);
  check::equal(large.load(), 200);
}

TEST("every slab is read once in a pass, with any number of threads and any prefetch") {
  for (const auto& [threads, prefetch] : {std::pair{1, 2}, {3, 2}, {2, 16}}) {
    auto with = options();
    with.prefetch = prefetch;
    Filled filled(1500, with);
    check::is_true(filled.file.records() > 5);
    std::vector<int> seen(1501);
    std::mutex mutex;
    filled.file.for_each(threads, [&](int, const Slab& slab) {
      const std::lock_guard lock(mutex);
      ++seen[std::size_t(std::lround(slab.row(0)[0] * 1e6))];
    });
    check::equal(std::accumulate(seen.begin() + 1, seen.end(), 0), 1500);
    check::equal(*std::max_element(seen.begin(), seen.end()), 1);
  }
}

TEST("an error of the consumer ends the pass of all threads and is thrown") {
  Filled filled(1500);
  const auto error = check::throws<std::runtime_error>([&] {
    filled.file.for_each(3, [](int, const Slab& slab) {
      if (std::lround(slab.row(0)[0] * 1e6) == 700) throw std::runtime_error("enough");
    });
  });
  check::equal(std::string(error.what()), "enough");
}

TEST("a slab that no record can hold is refused with its size") {
  const auto basis = model::basis({9, 9, 9, 9});
  IntegralFile file(*basis, options());
  IntegralFile::Writer writer(file);
  Slab slab;
  slab.label(*basis, 0, 1, 2);
  slab.shells = {3};
  slab.set_shells(*basis);
  const auto error = check::throws<outcore::Error>([&] { writer.add(slab); });
  check::equal(error.errno_value(), EMSGSIZE);
  check::contains(error.what(), "1048576");
}

TEST("records that are too small, and prefetch below two, are refused") {
  const auto basis = model::basis({0});
  auto small = options();
  small.record_bytes = 4096;
  check::throws<outcore::Error>([&] { IntegralFile(*basis, small); });
  auto blind = options();
  blind.prefetch = 1;
  check::throws<outcore::Error>([&] { IntegralFile(*basis, blind); });
}

TEST_MAIN
