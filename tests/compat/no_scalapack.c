/* Functions of ScaLAPACK that the linear algebra of Global Arrays needs, for an MPI without ScaLAPACK; no
 * test calls them. */
#define NAME(name) \
  int name(void);  \
  int name(void) { \
    return -1;     \
  }

NAME(blacs_gridexit_)
NAME(blacs_gridinfo_)
NAME(blacs_gridinit_)
NAME(descinit_)
NAME(iceil_)
NAME(indxg2p_)
NAME(numroc_)
NAME(pdgetrf_)
NAME(pdgetrs_)
NAME(pdlamch_)
NAME(pdpotrf_)
NAME(pdpotri_)
NAME(pdpotrs_)
NAME(pdsyev_)
NAME(pdsyevd_)
NAME(pdsyevr_)
NAME(pdsyevx_)
NAME(pdsygvx_)
NAME(pzheevd_)
NAME(pzheevr_)
