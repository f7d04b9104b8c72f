# Installs the library, and builds the programs beside this file with what lies there: by find_package, and by pkg-config
# if there is one. Once as part of the Python package, if the build has that, and once without.
#
# SOURCE, BUILD: of Outcore. PREFIX: of the library below that of the installation. CXX, C, PYTHON: programs.
# BLOSC2_INCLUDE, BLOSC2_LIBRARY: as in the build.
cmake_minimum_required(VERSION 3.20)
set(work ${BUILD}/tests/install)
set(passed 0)

function(run)
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY ${work} OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGV}: ${result}\n${said}")
  endif()
  set(said "${said}" PARENT_SCOPE)
endfunction()

# It ends with the error that it provokes.
macro(check program error)
  run(${program})
  string(FIND "${said}" "${error}" found)
  if(found EQUAL -1)
    message(FATAL_ERROR "${program} says\n${said}instead of '${error}'")
  endif()
  math(EXPR passed "${passed} + 1")
endmacro()

find_program(PKG_CONFIG pkg-config)
find_program(FORTRAN gfortran)

# `build` is installed into a directory of its own, where the library is below `prefix`.
macro(install_and_use name build prefix)
  set(tree ${work}/${name})
  run(${CMAKE_COMMAND} --install ${build} --prefix ${tree})
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${tree}/project -DCMAKE_PREFIX_PATH=${tree}/${prefix}
      -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_C_COMPILER=${C})
  run(${CMAKE_COMMAND} --build ${tree}/project)
  check(${tree}/project/in_cxx "[0:4, 0:4]")
  check(${tree}/project/in_c "Bad file descriptor")
  check(${tree}/project/classic "end of")
  if(EXISTS ${tree}/project/in_fortran)
    check(${tree}/project/in_fortran "the memory has 4 elements, the box 5")
  endif()
  if(PKG_CONFIG)
    set(ENV{PKG_CONFIG_PATH} ${tree}/${prefix}lib/pkgconfig)
    run(${PKG_CONFIG} --cflags --libs outcore)
    string(STRIP "${said}" flags)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    if(FORTRAN)
      run(${PKG_CONFIG} --variable=fortran outcore)
      string(STRIP "${said}" modules)
      run(${FORTRAN} -c ${modules} -J ${tree} -o ${tree}/modules.o)
      # A program of Fortran 2008, though the modules are none.
      run(${FORTRAN} -std=f2008 -I ${tree} ${CMAKE_CURRENT_LIST_DIR}/program.f90 ${tree}/modules.o -o ${tree}/by_flags_fortran ${flags})
      check(${tree}/by_flags_fortran "the memory has 4 elements, the box 5")
    endif()
    run(${CXX} -std=c++20 ${CMAKE_CURRENT_LIST_DIR}/program.cpp -o ${tree}/by_flags_cxx ${flags})
    check(${tree}/by_flags_cxx "[0:4, 0:4]")
    run(${C} -std=c11 ${CMAKE_CURRENT_LIST_DIR}/program.c -o ${tree}/by_flags_c ${flags})
    check(${tree}/by_flags_c "Bad file descriptor")
    run(${PKG_CONFIG} --cflags --libs outcore_pario)
    string(STRIP "${said}" flags)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    run(${C} -std=c11 ${CMAKE_CURRENT_LIST_DIR}/classic.c -o ${tree}/by_flags_classic ${flags})
    check(${tree}/by_flags_classic "end of")
  endif()
endmacro()

file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})
install_and_use(as_built ${BUILD} "${PREFIX}")
if(NOT PREFIX STREQUAL "")
  # What a build without Python installs; the libraries are those of this build.
  run(${CMAKE_COMMAND} -S ${SOURCE} -B ${work}/without_python -DOUTCORE_PYTHON=OFF -DCMAKE_CXX_COMPILER=${CXX}
      -DCMAKE_SKIP_RPATH=ON # the libraries have theirs
      -DPython_EXECUTABLE=${PYTHON} -DBLOSC2_INCLUDE=${BLOSC2_INCLUDE} -DBLOSC2_LIBRARY=${BLOSC2_LIBRARY})
  file(GLOB libraries ${BUILD}/liboutcore*.so ${BUILD}/outcore_mpi_*.so)
  file(COPY ${libraries} DESTINATION ${work}/without_python)
  install_and_use(plain ${work}/without_python "")
endif()
if(NOT PKG_CONFIG)
  message("pkg-config is not installed: its file is not tested")
endif()
message("${passed} passed, 0 failed")
