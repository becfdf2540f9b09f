# SPDX-License-Identifier: BSD-3-Clause
#
# The dependencies of heed's headers: heed::xtensor and heed::blas, independent of the names in the installed packages;
# heed::xtensor_blas, for programs that call xt::linalg; Threads::Threads; and, if installed,
# nlohmann_json::nlohmann_json, ICU::uc and heed::sentencepiece. Used by heed's CMakeLists.txt and, after installation,
# by heedConfig.cmake: both must define the same targets.
#
# heed_targets_global: makes the packages found here visible in the whole project. Needed when heed is a subdirectory:
# otherwise the parent directory does not know an imported target, and tries to link -lxtensor.

# Makes a package's imported targets visible everywhere (CMake 3.24 has a variable for it; 3.22 does not).
function(heed_share_targets)
  if(heed_targets_global)
    get_directory_property(found_here IMPORTED_TARGETS)
    foreach(target IN LISTS ARGN)
      if(target IN_LIST found_here)
        set_target_properties(${target} PROPERTIES IMPORTED_GLOBAL TRUE)
      endif()
    endforeach()
  endif()
endfunction()

function(heed_add_dependency name)
  if(heed_targets_global)
    add_library(${name} INTERFACE IMPORTED GLOBAL)
  else()
    add_library(${name} INTERFACE IMPORTED)
  endif()
endfunction()

# A missing dependency is an error when configuring heed itself, and "not found" inside find_package(heed).
macro(heed_missing)
  if(heed_targets_global)
    message(FATAL_ERROR ${ARGN})
  endif()
  string(CONCAT heed_NOT_FOUND_MESSAGE ${ARGN})
  set(heed_FOUND FALSE)
  return()
endmacro()

if(NOT TARGET Threads::Threads)
  find_package(Threads REQUIRED)
  heed_share_targets(Threads::Threads)
endif()

# ---- xtensor: Debian and conda call the target xtensor, others xtensor::xtensor. ---------------------------------------

if(NOT TARGET xtensor AND NOT TARGET xtensor::xtensor)
  if(NOT TARGET xtl)
    find_package(xtl QUIET)
    heed_share_targets(xtl)
  endif()
  find_package(xtensor QUIET)
  if(NOT xtensor_FOUND)
    heed_missing("heed needs xtensor 0.24 or later (Debian: libxtensor-dev). "
                 "If it is installed in a non-standard location, add that location to CMAKE_PREFIX_PATH.")
  endif()
  if(xtensor_VERSION VERSION_LESS 0.24)
    heed_missing("heed needs xtensor 0.24 or later, but found ${xtensor_VERSION} in ${xtensor_DIR}")
  endif()
  # Also share the helper targets of xtensor's package, so that all have the same visibility.
  heed_share_targets(xtensor xtensor::xtensor xtensor::optimize xtensor::use_xsimd xtensor::use_TBB xsimd)
endif()

if(NOT TARGET heed::xtensor)
  heed_add_dependency(heed::xtensor)
  if(TARGET xtensor::xtensor)
    set(heed_xtensor_target xtensor::xtensor)
  else()
    set(heed_xtensor_target xtensor)
  endif()
  target_link_libraries(heed::xtensor INTERFACE ${heed_xtensor_target})
  # Suppress warnings in xtensor's headers, even if xtensor is part of the project.
  target_include_directories(heed::xtensor SYSTEM
                             INTERFACE "$<TARGET_PROPERTY:${heed_xtensor_target},INTERFACE_INCLUDE_DIRECTORIES>")
  unset(heed_xtensor_target)
endif()

# ---- BLAS: the project's BLAS::BLAS if any, then BLA_VENDOR if set, then OpenBLAS, then any other. -------------

if(NOT HEED_BLAS MATCHES "^(auto|xtensor-blas|cblas|none)$")
  heed_missing("HEED_BLAS is '${HEED_BLAS}' but must be auto (the default), xtensor-blas, cblas or none.")
endif()

if(HEED_BLAS STREQUAL "none" AND NOT TARGET heed::blas)  # heed's own products
  heed_add_dependency(heed::blas)
  target_compile_definitions(heed::blas INTERFACE HEED_BLAS_NONE)
endif()

if(NOT HEED_BLAS STREQUAL "none" AND NOT TARGET BLAS::BLAS)
  if(NOT DEFINED BLA_SIZEOF_INTEGER)
    set(BLA_SIZEOF_INTEGER 4)  # heed passes int: a BLAS with 64-bit integers would read past its arguments
    set(heed_chose_integer ON)
  endif()
  if(DEFINED BLA_VENDOR OR DEFINED ENV{BLA_VENDOR})
    find_package(BLAS QUIET)
  else()
    set(BLA_VENDOR OpenBLAS)
    find_package(BLAS QUIET)
    set(heed_found_openblas ${BLAS_FOUND})
    unset(BLA_VENDOR)
    if(NOT BLAS_FOUND)
      find_package(BLAS QUIET)
    endif()
  endif()
  if(heed_chose_integer)
    unset(BLA_SIZEOF_INTEGER)
    unset(heed_chose_integer)
  endif()
  if(NOT BLAS_FOUND)
    heed_missing("heed needs a BLAS with the C interface (Debian: libopenblas-dev). "
                 "BLA_VENDOR selects one of several, and CMAKE_PREFIX_PATH lists folders to search. "
                 "With HEED_BLAS=none, heed uses its own matrix products.")
  endif()
  heed_share_targets(BLAS::BLAS)
endif()

# ---- xtensor-blas, whose typed layer calls the BLAS; or, with HEED_BLAS=cblas, <cblas.h>. --------------------------------

# Its package file creates the target before it searches for the BLAS and the LAPACK, so only _FOUND is reliable.
# (A second find_package would find that target, and report success.)
set(heed_has_xtensor_blas OFF)
if(TARGET xtensor-blas AND (xtensor-blas_FOUND OR NOT DEFINED xtensor-blas_FOUND))
  set(heed_has_xtensor_blas ON)
elseif(NOT TARGET xtensor-blas AND HEED_BLAS MATCHES "^(auto|xtensor-blas)$")
  # It searches for a BLAS and a LAPACK itself: they should be those that heed has found.
  if(heed_found_openblas)
    set(BLA_VENDOR OpenBLAS)
  endif()
  find_package(xtensor-blas QUIET)
  if(heed_found_openblas)
    unset(BLA_VENDOR)
  endif()
  if(xtensor-blas_FOUND)
    set(heed_has_xtensor_blas ON)
    heed_share_targets(xtensor-blas BLAS::BLAS LAPACK::LAPACK)
  endif()
endif()
if(HEED_BLAS STREQUAL "xtensor-blas" AND NOT heed_has_xtensor_blas)
  heed_missing("heed needs xtensor-blas 0.20 or later, and the BLAS and LAPACK that it requires "
               "(Debian: libxtensor-blas-dev libopenblas-dev). HEED_BLAS=cblas uses <cblas.h> instead, and "
               "HEED_BLAS=none no BLAS.")
endif()
# Replaces auto with the result, so that a program and the heed that it uses make the same choice.
if(HEED_BLAS STREQUAL "auto")
  find_path(HEED_CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas)
  mark_as_advanced(HEED_CBLAS_INCLUDE_DIR)
  if(heed_has_xtensor_blas)
    set(HEED_BLAS xtensor-blas)
  elseif(HEED_CBLAS_INCLUDE_DIR)
    set(HEED_BLAS cblas)
  else()
    heed_missing("heed calls the BLAS through xtensor-blas (Debian: libxtensor-blas-dev) or <cblas.h> (libopenblas-dev), "
                 "but neither was found. With HEED_BLAS=none, heed uses its own matrix products.")
  endif()
endif()
unset(heed_found_openblas)
unset(heed_has_xtensor_blas)

if(HEED_BLAS STREQUAL "xtensor-blas" AND NOT TARGET heed::xtensor_blas)
  heed_add_dependency(heed::xtensor_blas)
  target_link_libraries(heed::xtensor_blas INTERFACE xtensor-blas)
  target_include_directories(heed::xtensor_blas SYSTEM
                             INTERFACE "$<TARGET_PROPERTY:xtensor-blas,INTERFACE_INCLUDE_DIRECTORIES>")
endif()

if(NOT TARGET heed::blas)
  heed_add_dependency(heed::blas)
  target_link_libraries(heed::blas INTERFACE BLAS::BLAS)
  if(HEED_BLAS STREQUAL "xtensor-blas")  # only its headers: heed::blas does not need LAPACK
    target_include_directories(heed::blas SYSTEM
                               INTERFACE "$<TARGET_PROPERTY:xtensor-blas,INTERFACE_INCLUDE_DIRECTORIES>")
  else()
    target_compile_definitions(heed::blas INTERFACE HEED_BLAS_CBLAS)
    find_path(HEED_CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas)
    mark_as_advanced(HEED_CBLAS_INCLUDE_DIR)
    if(NOT HEED_CBLAS_INCLUDE_DIR)
      heed_missing("HEED_BLAS=cblas needs <cblas.h> (Debian: libopenblas-dev). "
                   "Set HEED_CBLAS_INCLUDE_DIR to its folder.")
    endif()
    target_include_directories(heed::blas SYSTEM INTERFACE "${HEED_CBLAS_INCLUDE_DIR}")
  endif()

  # heed calls cblas_sgemm and related functions. Some builds of the reference BLAS have these in a separate library.
  include(CheckCXXSourceCompiles)
  set(heed_cblas_probe "extern \"C\" float cblas_sdot(int, const float*, int, const float*, int);
    int main() { float x = 2; return cblas_sdot(1, &x, 1, &x, 1) == 4.0f ? 0 : 1; }")
  set(heed_saved_libraries "${CMAKE_REQUIRED_LIBRARIES}")
  set(heed_saved_quiet "${CMAKE_REQUIRED_QUIET}")
  set(CMAKE_REQUIRED_QUIET ON)
  set(CMAKE_REQUIRED_LIBRARIES BLAS::BLAS)
  check_cxx_source_compiles("${heed_cblas_probe}" HEED_BLAS_HAS_CBLAS)
  if(NOT HEED_BLAS_HAS_CBLAS)
    find_library(HEED_CBLAS_LIBRARY cblas)
    mark_as_advanced(HEED_CBLAS_LIBRARY)
    set(heed_has_cblas OFF)
    if(HEED_CBLAS_LIBRARY)
      set(CMAKE_REQUIRED_LIBRARIES "${HEED_CBLAS_LIBRARY}" BLAS::BLAS)
      check_cxx_source_compiles("${heed_cblas_probe}" HEED_CBLAS_LIBRARY_WORKS)
      set(heed_has_cblas ${HEED_CBLAS_LIBRARY_WORKS})
    endif()
    if(NOT heed_has_cblas)
      heed_missing("${BLAS_LIBRARIES} does not have a C interface (cblas_sgemm). "
                   "Install OpenBLAS, which has one (Debian: libopenblas-dev).")
    endif()
    target_link_libraries(heed::blas INTERFACE "${HEED_CBLAS_LIBRARY}")
    unset(heed_has_cblas)
  endif()
  set(CMAKE_REQUIRED_LIBRARIES "${heed_saved_libraries}")
  set(CMAKE_REQUIRED_QUIET "${heed_saved_quiet}")
  unset(heed_saved_libraries)
  unset(heed_saved_quiet)
  unset(heed_cblas_probe)
endif()

# ---- JSON: only for io/ and heed_kit; heed::heed does not need it. --------------------------------------------------------

if(NOT TARGET nlohmann_json::nlohmann_json)
  find_package(nlohmann_json QUIET)
  heed_share_targets(nlohmann_json::nlohmann_json)
endif()

# ---- SentencePiece and ICU: for text/raw_text.hpp and its includes; without them there is no heed::raw_text. ------------

if(NOT TARGET ICU::uc)
  find_package(ICU QUIET COMPONENTS uc)
  heed_share_targets(ICU::uc)
endif()
if(NOT TARGET heed::sentencepiece)
  find_path(HEED_SENTENCEPIECE_INCLUDE_DIR sentencepiece_processor.h)
  find_library(HEED_SENTENCEPIECE_LIBRARY sentencepiece)
  find_library(HEED_SENTENCEPIECE_TRAIN_LIBRARY sentencepiece_train)
  mark_as_advanced(HEED_SENTENCEPIECE_INCLUDE_DIR HEED_SENTENCEPIECE_LIBRARY HEED_SENTENCEPIECE_TRAIN_LIBRARY)
  if(HEED_SENTENCEPIECE_INCLUDE_DIR AND HEED_SENTENCEPIECE_LIBRARY AND HEED_SENTENCEPIECE_TRAIN_LIBRARY)
    heed_add_dependency(heed::sentencepiece)
    target_include_directories(heed::sentencepiece SYSTEM INTERFACE "${HEED_SENTENCEPIECE_INCLUDE_DIR}")
    target_link_libraries(heed::sentencepiece INTERFACE "${HEED_SENTENCEPIECE_LIBRARY}"
                                                        "${HEED_SENTENCEPIECE_TRAIN_LIBRARY}")
  endif()
endif()

# ---- MPI, as heed::mpi: for heed_mpi/mpi.hpp; without it there is no heed::distributed. The search takes a second, and
# runs only if requested. ---------------------------------------------------------------------------------------------------

# An existing target does not imply that the package was found: FindMPI creates MPI::MPI_CXX to test the compiler, and
# does not remove it if the test fails. Only *_FOUND is reliable. If the target exists but MPI_CXX_FOUND is not defined,
# the project created the target.
if((HEED_MPI OR "distributed" IN_LIST heed_FIND_COMPONENTS) AND NOT TARGET heed::mpi)
  if(NOT TARGET MPI::MPI_CXX OR (DEFINED MPI_CXX_FOUND AND NOT MPI_CXX_FOUND))
    set(MPI_CXX_SKIP_MPICXX ON)  # the C++ bindings, which MPI no longer has
    find_package(MPI QUIET COMPONENTS CXX)
  endif()
  if(TARGET MPI::MPI_CXX AND (MPI_CXX_FOUND OR NOT DEFINED MPI_CXX_FOUND))
    heed_share_targets(MPI::MPI_CXX)
    heed_add_dependency(heed::mpi)
    target_link_libraries(heed::mpi INTERFACE MPI::MPI_CXX)
  endif()
endif()
