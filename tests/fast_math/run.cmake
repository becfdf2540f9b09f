# SPDX-License-Identifier: BSD-3-Clause
#
# Compiles program.cpp with FLAGS. EXPECT=right: runs it and checks the results. EXPECT=refused: it must not compile,
# and heed's error must state the fix.

cmake_minimum_required(VERSION 3.22)

foreach(directory IN LISTS SYSTEM_INCLUDES)
  # Passing the compiler's built-in directories again would break its #include_next.
  if(directory AND NOT directory STREQUAL INCLUDE AND NOT directory IN_LIST IMPLICIT_INCLUDES)
    list(APPEND includes -isystem "${directory}")
  endif()
endforeach()
if(NOT COMPILER MATCHES "clang")
  list(APPEND FLAGS --param=ggc-min-heapsize=1000000)  # as in heed_warnings
endif()
set(compile "${COMPILER}" -std=c++20 ${FLAGS} -I "${INCLUDE}" ${includes} "${CMAKE_CURRENT_LIST_DIR}/program.cpp")

set(ENV{LC_ALL} C)
if(EXPECT STREQUAL "refused")
  execute_process(COMMAND ${compile} -E -Wfatal-errors RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(result EQUAL 0 OR NOT output MATCHES "error: [^\n]*add -fno-finite-math-only")
    message(FATAL_ERROR "With ${FLAGS} the compiler must reject heed with one clear error. ${COMPILER} printed:\n${output}")
  endif()
  return()
endif()

execute_process(COMMAND ${compile} -o "${PROGRAM}" ${LIBRARIES} -pthread RESULT_VARIABLE result
                OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${output}")
endif()
execute_process(COMMAND "${PROGRAM}" RESULT_VARIABLE result OUTPUT_VARIABLE output)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "Compiled by ${COMPILER} with ${FLAGS}:\n${output}")
endif()
