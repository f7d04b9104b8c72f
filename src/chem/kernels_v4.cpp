#ifdef OUTCORE_X86
#define KERNELS kernels_v4
#define KERNEL_NAME "AVX-512"
#define KERNEL_LANE 8
#define KERNEL_ROWS 3
#include "chem/kernels_body.hpp"
#endif
