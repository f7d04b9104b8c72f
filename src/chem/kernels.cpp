#include "chem/kernels.hpp"

namespace outcore::chem {

const Kernels& kernels() noexcept {
#ifdef OUTCORE_X86
  static const Kernels& best =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")
          ? kernels_v4
      : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? kernels_v3
                                                                        : kernels_base;
  return best;
#else
  return kernels_base;
#endif
}

}  // namespace outcore::chem
