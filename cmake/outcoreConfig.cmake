# find_package(outcore): the target outcore::outcore, the shared library with its headers.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/outcoreTargets.cmake")
