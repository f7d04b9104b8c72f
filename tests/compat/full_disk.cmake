# Shared files of several processes on a disk that is full.
if(OUTCORE_SANITIZE)
  return()
endif()
foreach(family ${OUTCORE_MPI_FAMILIES})
  get_filename_component(prefix ${OUTCORE_MPI_${family}_INCLUDE} DIRECTORY)
  find_library(OUTCORE_MPI_${family}_LIBRARY mpi PATHS ${prefix}/lib NO_DEFAULT_PATH)
  find_program(OUTCORE_MPI_${family}_EXEC mpiexec PATHS ${prefix}/bin NO_DEFAULT_PATH)
  if(NOT OUTCORE_MPI_${family}_LIBRARY OR NOT OUTCORE_MPI_${family}_EXEC)
    continue()
  endif()
  set(program compat_full_disk_${family})
  add_executable(${program} ${CMAKE_CURRENT_LIST_DIR}/full_disk_program.c)
  target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_include_directories(${program} SYSTEM PRIVATE ${OUTCORE_MPI_${family}_INCLUDE})
  target_compile_definitions(${program} PRIVATE OMPI_SKIP_MPICXX=1 MPICH_SKIP_MPICXX=1)
  target_link_libraries(${program} PRIVATE outcore_pario outcore ${OUTCORE_MPI_${family}_LIBRARY})
  add_dependencies(${program} outcore_mpi_${family})
  add_dependencies(outcore_tests ${program})
  set(environment "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe" OMPI_ALLOW_RUN_AS_ROOT=1
      OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_osc=^ucx)
  set(place ${CMAKE_CURRENT_BINARY_DIR}/full_disk_${family})
  add_test(NAME compat/full_disk_${family}
           COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/small_disk.sh ${place}
                   ${OUTCORE_MPI_${family}_EXEC} -n 3 $<TARGET_FILE:${program}> ${place})
  set_tests_properties(compat/full_disk_${family} PROPERTIES PROCESSORS 2 TIMEOUT 60 ENVIRONMENT "${environment}"
                                                              SKIP_REGULAR_EXPRESSION "NOT TESTED")
endforeach()
