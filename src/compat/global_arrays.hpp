// The Global Arrays library that the program has linked, if any: the functions below its C and Fortran
// interfaces. Weak, so that programs without it can use the rest; indices are Fortran's, first axis fastest.
#pragma once

#include "compat/shared.hpp"

namespace outcore::compat {

/// The number of Integer among the types of MA, which are those of Global Arrays.
inline constexpr int c_integer = sizeof(Integer) == 8 ? 1002 : 1001;

}  // namespace outcore::compat

extern "C" {
using OutcoreGaInteger = outcore::compat::Integer;
[[gnu::weak]] int pnga_initialized();
[[gnu::weak]] OutcoreGaInteger pnga_valid_handle(OutcoreGaInteger g_a);
[[gnu::weak]] OutcoreGaInteger pnga_nodeid();
[[gnu::weak]] OutcoreGaInteger pnga_get_pgroup(OutcoreGaInteger g_a);
[[gnu::weak]] OutcoreGaInteger pnga_pgroup_get_default();
[[gnu::weak]] OutcoreGaInteger pnga_pgroup_nodeid(OutcoreGaInteger group);
[[gnu::weak]] OutcoreGaInteger pnga_pgroup_nnodes(OutcoreGaInteger group);
[[gnu::weak]] OutcoreGaInteger pnga_pgroup_absolute_id(OutcoreGaInteger group, OutcoreGaInteger process);
/// An MPI_Comm: a pointer in Open MPI, an integer in MPICH.
[[gnu::weak]] void* GA_MPI_Comm_pgroup_default();
[[gnu::weak]] OutcoreGaInteger pnga_nnodes();
[[gnu::weak]] OutcoreGaInteger pnga_ndim(OutcoreGaInteger g_a);
[[gnu::weak]] OutcoreGaInteger pnga_total_blocks(OutcoreGaInteger g_a);
[[gnu::weak]] OutcoreGaInteger pnga_is_mirrored(OutcoreGaInteger g_a);
[[gnu::weak]] OutcoreGaInteger pnga_cluster_nodeid();
[[gnu::weak]] OutcoreGaInteger pnga_cluster_nprocs(OutcoreGaInteger node);
[[gnu::weak]] OutcoreGaInteger pnga_cluster_procid(OutcoreGaInteger node, OutcoreGaInteger number);
[[gnu::weak]] void pnga_sync();
[[gnu::weak]] void pnga_brdcst(OutcoreGaInteger type, void* data, OutcoreGaInteger bytes,
                               OutcoreGaInteger origin);
[[gnu::weak]] void pnga_gop(OutcoreGaInteger type, void* values, OutcoreGaInteger count, char* operation);
[[gnu::weak]] void pnga_inquire(OutcoreGaInteger g_a, OutcoreGaInteger* type, OutcoreGaInteger* ndim,
                                OutcoreGaInteger* dims);
[[gnu::weak]] void pnga_distribution(OutcoreGaInteger g_a, OutcoreGaInteger process, OutcoreGaInteger* lo,
                                     OutcoreGaInteger* hi);
[[gnu::weak]] void pnga_access_ptr(OutcoreGaInteger g_a, OutcoreGaInteger* lo, OutcoreGaInteger* hi,
                                   void* pointer, OutcoreGaInteger* ld);
[[gnu::weak]] void pnga_release(OutcoreGaInteger g_a, OutcoreGaInteger* lo, OutcoreGaInteger* hi);
[[gnu::weak]] void pnga_release_update(OutcoreGaInteger g_a, OutcoreGaInteger* lo, OutcoreGaInteger* hi);
[[gnu::weak]] void pnga_get(OutcoreGaInteger g_a, OutcoreGaInteger* lo, OutcoreGaInteger* hi, void* memory,
                            OutcoreGaInteger* ld);
[[gnu::weak]] void pnga_put(OutcoreGaInteger g_a, OutcoreGaInteger* lo, OutcoreGaInteger* hi, void* memory,
                            OutcoreGaInteger* ld);
}
