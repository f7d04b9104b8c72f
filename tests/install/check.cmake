# Installs a build into a directory of its own, and builds the programs beside this file with what lies there: by
# find_package, and by pkg-config if there is one.
#
#   cmake -DBUILD=DIR -DPREFIX=DIR (of the library below that of the installation) -DCXX=COMPILER -DC=COMPILER -P check.cmake
cmake_minimum_required(VERSION 3.20)
set(work ${BUILD}/tests/install)
set(installed ${work}/tree/${PREFIX})
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY ${work} OUTPUT_VARIABLE said ERROR_VARIABLE said RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGV}: ${result}\n${said}")
  endif()
  set(said "${said}" PARENT_SCOPE)
endfunction()

# It ends with the error that it provokes.
function(check program error)
  run(${program})
  string(FIND "${said}" "${error}" found)
  if(found EQUAL -1)
    message(FATAL_ERROR "${program} says\n${said}instead of '${error}'")
  endif()
  message("${program}: ${said}")
endfunction()

file(MAKE_DIRECTORY ${work})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/tree)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${work}/project -DCMAKE_PREFIX_PATH=${installed}
    -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_C_COMPILER=${C})
run(${CMAKE_COMMAND} --build ${work}/project)
check(${work}/project/in_cxx "[0:4, 0:4]")
check(${work}/project/in_c "Bad file descriptor")

find_program(PKG_CONFIG pkg-config)
if(NOT PKG_CONFIG)
  message("pkg-config is not installed: its file is not tested\n2 passed, 0 failed")
  return()
endif()
set(ENV{PKG_CONFIG_PATH} ${installed}/lib/pkgconfig)
run(${PKG_CONFIG} --cflags --libs outcore)
string(STRIP "${said}" flags)
separate_arguments(flags UNIX_COMMAND "${flags}")
run(${CXX} -std=c++20 ${CMAKE_CURRENT_LIST_DIR}/program.cpp -o ${work}/by_flags_cxx ${flags})
check(${work}/by_flags_cxx "[0:4, 0:4]")
run(${C} -std=c11 ${CMAKE_CURRENT_LIST_DIR}/program.c -o ${work}/by_flags_c ${flags})
check(${work}/by_flags_c "Bad file descriptor")
message("4 passed, 0 failed")
