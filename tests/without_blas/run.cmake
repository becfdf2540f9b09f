# SPDX-License-Identifier: BSD-3-Clause
#
# Compiles program.cpp with HEED_BLAS_NONE, without libraries, and runs it. It must not include a BLAS header.

cmake_minimum_required(VERSION 3.22)

foreach(directory IN LISTS SYSTEM_INCLUDES)
  # Passing the compiler's built-in directories again would break its #include_next.
  if(directory AND NOT directory STREQUAL INCLUDE AND NOT directory IN_LIST IMPLICIT_INCLUDES)
    list(APPEND includes -isystem "${directory}")
  endif()
endforeach()
set(ENV{LC_ALL} C)
execute_process(
  COMMAND "${COMPILER}" ${QUICKER} -std=c++20 -DHEED_BLAS_NONE -I "${INCLUDE}" ${includes} -MD -MF "${PROGRAM}.d"
          "${CMAKE_CURRENT_LIST_DIR}/program.cpp" -o "${PROGRAM}"
  RESULT_VARIABLE result
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${output}")
endif()
file(READ "${PROGRAM}.d" read)
if(read MATCHES "[^ \n]*(xtensor-blas|xflens|cblas)[^ \n]*")
  message(FATAL_ERROR "a BLAS header was included despite HEED_BLAS_NONE: ${CMAKE_MATCH_0}")
endif()
execute_process(COMMAND "${PROGRAM}" RESULT_VARIABLE result OUTPUT_VARIABLE output)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "Without a BLAS:\n${output}")
endif()
