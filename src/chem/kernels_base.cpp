#define KERNELS kernels_base
#define KERNEL_NAME "any"
#define KERNEL_LANE 2
#define KERNEL_ROWS 1
#include "chem/kernels_body.hpp"
