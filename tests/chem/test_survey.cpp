#include "chem/hf/survey.hpp"
#include "model.hpp"
#include "support/check.hpp"

using namespace outcore::chem;

namespace {
const std::vector<int> shells{0, 1, 2, 0, 3, 1, 0, 2, 1, 0, 1};

/// The survey of a molecule whose density matrix is the unit matrix.
struct Surveyed {
  Surveyed(const Basis& basis, const Screening& screening, double threshold)
      : accuracy(threshold),
        density(basis, unit(std::size_t(basis.functions())).data(), std::vector<int>{1}),
        surveyor(basis, screening, accuracy, density) {}
  static std::vector<double> unit(std::size_t n) {
    std::vector<double> matrix(n * n);
    for (std::size_t p = 0; p < n; ++p) matrix[p * n + p] = 1;
    return matrix;
  }
  Accuracy accuracy;
  Densities density;
  Surveyor surveyor;
};
}  // namespace

TEST("weights of many draws add up to the integrals and bytes of the whole") {
  const auto basis = model::basis(shells);
  for (double threshold : {1e-10, 1e-2}) {
    const Screening screening(*basis, threshold, 1);
    const Survey survey = Surveyed(*basis, screening, threshold).surveyor.run(1e9, 400, 0, 1);
    check::equal(survey.draws, std::uint64_t{400});
    double values = 0, bytes = 0;
    for (const auto& q : survey.quartets) {
      values += q.weight * q.values / double(survey.draws);
      bytes += q.weight * q.bytes / double(survey.draws);
    }
    check::is_true(std::abs(values / double(screening.integrals()) - 1) < 0.03);

    SlabMaker maker(*basis, screening);
    const Accuracy accuracy(threshold);
    SlabCodec codec(accuracy);
    double stored = 0;
    std::vector<std::byte> out;
    for (const auto& task : screening.tasks())
      maker.run(task, {}, [&](const Slab& slab) {
        out.resize(SlabCodec::packed_bound(slab));
        stored += double(codec.pack(*basis, slab, out.data()));
      });
    check::is_true(std::abs(bytes / stored - 1) < 0.06);
  }
}

TEST("parts of one sequence of draws are different ones") {
  const auto basis = model::basis(shells);
  const Screening screening(*basis, 1e-10, 1);
  Surveyed of(*basis, screening, 1e-10);
  Surveyor& surveyor = of.surveyor;
  const auto whole = surveyor.run(1e9, 6, 0, 1);
  double sum = 0, parts = 0;
  for (const auto& q : whole.quartets) sum += q.weight * q.bound;
  for (std::uint64_t part : {0, 1, 2})
    for (const auto& q : surveyor.run(1e9, 2, part, 3).quartets) parts += q.weight * q.bound;
  check::is_true(std::abs(parts / sum - 1) < 1e-12);
}

TEST("a survey ends in time, with one draw at least") {
  const auto basis = model::basis(shells);
  const Screening screening(*basis, 1e-10, 1);
  check::equal(Surveyed(*basis, screening, 1e-10).surveyor.run(0, 1000000, 0, 1).draws, std::uint64_t{1});
}

TEST("as many quartets of a task are counted as are in its slabs") {
  const auto basis = model::basis(shells);
  const Screening screening(*basis, 1e-2, 1);
  const Densities density(*basis, Surveyed::unit(std::size_t(basis->functions())).data(),
                          std::vector<int>{1});
  DensityBounds bounds = density.bounds(*basis);
  bounds.threshold = 1;
  SlabMaker maker(*basis, screening);
  for (const Selection& selection : {Selection{}, Selection{.density = &bounds}, Selection{.small_below = 1}})
    for (const auto& task : screening.tasks()) {
      std::size_t in_slabs = 0;
      maker.run(task, selection, [&](const Slab& slab) { in_slabs += slab.shells.size(); });
      const auto computed = maker.quartets();
      check::equal(maker.count(task, selection), in_slabs);
      check::equal(maker.quartets(), computed);
    }
}

TEST("a survey looks at the quartets of some task") {
  const auto basis = model::basis(shells);
  const Screening screening(*basis, 1e-10, 1);
  const Survey survey = Surveyed(*basis, screening, 1e-10).surveyor.run(0, 1, 0, 1);
  check::equal(survey.looked, std::uint64_t{1});
  check::is_true(survey.look_seconds > 0);
  check::equal(survey.look_squares, survey.look_seconds * survey.look_seconds);
}

TEST("nothing to do is surveyed without a draw") {
  const auto basis = model::basis({0});
  const Screening screening(*basis, 1e10, 1);
  check::equal(Surveyed(*basis, screening, 1e-10).surveyor.run(1, 10, 0, 1).draws, std::uint64_t{0});
}

TEST_MAIN
