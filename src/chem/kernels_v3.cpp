#ifdef OUTCORE_X86
#define KERNELS kernels_v3
#define KERNEL_NAME "AVX2"
#define KERNEL_LANE 4
#define KERNEL_ROWS 2
#include "chem/kernels_body.hpp"
#endif
