# SPDX-License-Identifier: BSD-3-Clause
#
# A package may create its target and then report that it was not found. Such a target must be ignored: FindMPI creates
# one if MPI is not installed, xtensor-blas if LAPACK is missing.

cmake_minimum_required(VERSION 3.22)

file(REMOVE_RECURSE "${SCRATCH}")
file(WRITE "${SCRATCH}/modules/FindMPI.cmake" [[
if(NOT TARGET MPI::MPI_CXX)
  add_library(MPI::MPI_CXX INTERFACE IMPORTED)
endif()
set(MPI_FOUND FALSE)
set(MPI_CXX_FOUND FALSE)
]])
file(WRITE "${SCRATCH}/xtensor-blas/xtensor-blasConfig.cmake" [[
add_library(xtensor-blas INTERFACE IMPORTED)
set(xtensor-blas_FOUND FALSE)
set(xtensor-blas_NOT_FOUND_MESSAGE "no LAPACK")
]])
foreach(parent IN ITEMS OFF ON)  # heed itself, and a project that searched for them before
  file(WRITE "${SCRATCH}/${parent}/CMakeLists.txt" "
cmake_minimum_required(VERSION 3.22)
project(parent LANGUAGES CXX)
if(${parent})
  find_package(MPI QUIET)
  find_package(xtensor-blas QUIET)
endif()
set(HEED_MPI ON)
set(HEED_NATIVE OFF)
add_subdirectory(\"${HEED_SOURCE}\" heed)
if(TARGET heed::distributed OR TARGET heed::xtensor_blas)
  message(FATAL_ERROR \"MPI or xtensor-blas was treated as found\")
endif()
")
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -S "${SCRATCH}/${parent}" -B "${SCRATCH}/${parent}/build" -G "${GENERATOR}"
            "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${PREFIX_PATH}"
            "-DCMAKE_MODULE_PATH=${SCRATCH}/modules" "-Dxtensor-blas_DIR=${SCRATCH}/xtensor-blas"
            -DCMAKE_POLICY_DEFAULT_CMP0077=NEW
    RESULT_VARIABLE result
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${output}")
  endif()
endforeach()
