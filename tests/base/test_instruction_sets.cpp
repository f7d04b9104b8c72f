// One body, compiled for several instruction sets by outcore_kernels; see CMakeLists.txt.
#include <array>
#include <vector>

#include "base/instruction_sets.hpp"
#include "base/scale_kernels.hpp"
#include "support/check.hpp"

using outcore::InstructionSet;

TEST("every instruction set has a table of its own, which was compiled for it") {
  int last = 0;
  for (const auto& variant : scale::kernels_variants) {
    check::is_true(variant.table.lane > last, "not from the simplest to the best");
    last = variant.table.lane;
  }
#ifdef OUTCORE_X86
  check::equal(last, 8);
#endif
}

TEST("all that run here give the same") {
  for (const auto& variant : scale::kernels_variants) {
    if (!outcore::runs(variant.set)) continue;
    std::vector<double> x(1001, 2.0);
    variant.table.scale(x.data(), 1000, 1.5);
    for (std::size_t at = 0; at < 1000; ++at) check::equal(x[at], 3.0);
    check::equal(x[1000], 2.0);
  }
}

TEST("the one that is chosen is the best that runs here") {
  const auto& chosen = scale::kernels();
  check::is_true(outcore::runs(InstructionSet::any));
  for (const auto& variant : scale::kernels_variants)
    if (outcore::runs(variant.set)) check::is_true(variant.table.lane <= chosen.lane);
  bool runs = false;
  for (const auto& variant : scale::kernels_variants)
    runs = runs || (&variant.table == &chosen && outcore::runs(variant.set));
  check::is_true(runs, "it does not run here");
}

TEST("an instruction set that has no table of its own is served by the next below") {
  const outcore::KernelVariant<scale::Kernels> few[] = {{InstructionSet::any, scale::kernels_any}};
  check::equal(&outcore::best(few), &scale::kernels_any);
}

TEST_MAIN
