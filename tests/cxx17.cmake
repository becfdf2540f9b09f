# SPDX-License-Identifier: BSD-3-Clause
#
# Compiles each of HEADERS alone as C++17, in SCRATCH. It must be refused in a few lines, and the first error must ask
# for C++20. The only include directory is heed's: dependencies are included later.

cmake_minimum_required(VERSION 3.22)

set(ENV{LC_ALL} C)  # messages in English, whatever the locale
set(source "${SCRATCH}/cxx17.cpp")
if(NOT HEADERS)
  message(FATAL_ERROR "there are no headers")
endif()
foreach(header IN LISTS HEADERS)
  file(WRITE "${source}" "#include <${header}>\n")
  execute_process(
    COMMAND "${COMPILER}" -std=c++17 -fsyntax-only -fdiagnostics-color=never -I "${INCLUDE}" "${source}"
    RESULT_VARIABLE result
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(header STREQUAL "heed/version.hpp")  # preprocessor only; any program may read the version
    if(NOT result EQUAL 0)
      message(FATAL_ERROR "<${header}> does not compile as C++17:\n${output}")
    endif()
    continue()
  endif()
  string(REGEX MATCHALL "[^\n]+" lines "${output}")
  list(LENGTH lines count)
  string(REGEX MATCH "error: [^\n]*" first "${output}")
  if(result EQUAL 0 OR count GREATER 20 OR NOT first MATCHES "heed needs C\\+\\+20: compile with -std=c\\+\\+20")
    list(SUBLIST lines 0 30 lines)
    list(JOIN lines "\n" lines)
    message(FATAL_ERROR "<${header}> as C++17 (status ${result}) should say in 20 lines or fewer that heed needs C++20, and "
                        "says in ${count}:\n${lines}")
  endif()
endforeach()
