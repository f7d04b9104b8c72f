# find_package(outcore): the target outcore::outcore, the shared library with its headers. Where the project has Fortran
# enabled also outcore::fortran, the modules, compiled with the flags of the project. outcore::pario has the classic names
# of EAF, SF, DRA and ELIO, outcore::pario_integer4 the same for INTEGER of 4 bytes.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/outcoreTargets.cmake")
get_property(outcore_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(Fortran IN_LIST outcore_languages AND NOT TARGET outcore::fortran)
  get_target_property(outcore_include outcore::outcore INTERFACE_INCLUDE_DIRECTORIES)
  list(GET outcore_include 0 outcore_include)
  add_library(outcore_fortran STATIC "${outcore_include}/outcore/outcore.f90")
  set_target_properties(outcore_fortran PROPERTIES Fortran_MODULE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/outcore_fortran")
  target_include_directories(outcore_fortran INTERFACE "${CMAKE_CURRENT_BINARY_DIR}/outcore_fortran")
  target_link_libraries(outcore_fortran PUBLIC outcore::outcore)
  add_library(outcore::fortran ALIAS outcore_fortran)
endif()
