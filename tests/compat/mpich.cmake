# Disk arrays with the Global Arrays that Debian has for MPICH, run by the MPICH at hand, whose binary interface is the same.
find_library(OUTCORE_GA_MPICH_LIBRARY ga-mpich)
find_library(OUTCORE_GA_MPICH_ARMCI armci-mpich)
find_library(OUTCORE_GA_LAPACK NAMES lapack liblapack.so.3)
find_library(OUTCORE_GA_BLAS NAMES blas libblas.so.3)
find_path(OUTCORE_GA_INCLUDE ga.h)
if(OUTCORE_MPI_mpich_INCLUDE)
  get_filename_component(prefix ${OUTCORE_MPI_mpich_INCLUDE} DIRECTORY)
  find_program(OUTCORE_GA_MPICH_CC mpicc PATHS ${prefix}/bin NO_DEFAULT_PATH)
  find_program(OUTCORE_GA_MPICH_EXEC mpiexec PATHS ${prefix}/bin NO_DEFAULT_PATH)
endif()
if(NOT OUTCORE_GA_MPICH_LIBRARY OR NOT OUTCORE_GA_MPICH_ARMCI OR NOT OUTCORE_GA_LAPACK OR NOT OUTCORE_GA_BLAS OR NOT OUTCORE_GA_INCLUDE
   OR NOT OUTCORE_GA_MPICH_CC OR NOT OUTCORE_GA_MPICH_EXEC OR OUTCORE_SANITIZE)
  message(STATUS "Global Arrays for MPICH: not here, the classic names are tested without (install libglobalarrays-dev, "
                 "libarmci-mpi-dev)")
  return()
endif()
set(program compat_dra_mpich)
set(sources ${CMAKE_CURRENT_LIST_DIR}/dra_program.c ${CMAKE_CURRENT_LIST_DIR}/no_scalapack.c)
add_custom_command(OUTPUT ${program} DEPENDS ${sources} ${CMAKE_CURRENT_LIST_DIR}/ga_program.h outcore_pario
                   COMMAND ${OUTCORE_GA_MPICH_CC} -O1 -I${OUTCORE_GA_INCLUDE} ${sources} -o ${program} $<TARGET_FILE:outcore_pario>
                           $<TARGET_FILE:outcore> -Wl,-rpath,$<TARGET_FILE_DIR:outcore_pario> ${OUTCORE_GA_MPICH_LIBRARY}
                           ${OUTCORE_GA_MPICH_ARMCI} ${OUTCORE_GA_LAPACK} ${OUTCORE_GA_BLAS} -lgfortran -lm)
add_custom_target(outcore_ga_mpich_programs DEPENDS ${program} outcore_mpi_mpich)
add_dependencies(outcore_tests outcore_ga_mpich_programs)
foreach(count 1 2 4)
  set(place ${CMAKE_CURRENT_BINARY_DIR}/dra_mpich_${count})
  file(MAKE_DIRECTORY ${place})
  add_test(NAME compat/dra_mpich_${count}
           COMMAND ${OUTCORE_GA_MPICH_EXEC} -n ${count} ${CMAKE_CURRENT_BINARY_DIR}/${program} ${place})
  set_tests_properties(compat/dra_mpich_${count} PROPERTIES PROCESSORS 2 PASS_REGULAR_EXPRESSION "(^|\n)0 failed"
                                                            FAIL_REGULAR_EXPRESSION "FAIL")
endforeach()
