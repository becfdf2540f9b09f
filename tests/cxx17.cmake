# SPDX-License-Identifier: BSD-3-Clause
#
# Compiles each of HEADERS alone, in SCRATCH, as C++17, without exceptions, and with an unsupported compiler version.
# The compiler must reject it in a few lines, and the first error must state heed's requirement. The only include
# directory is heed's: dependencies are included later.

cmake_minimum_required(VERSION 3.22)

set(ENV{LC_ALL} C)  # messages in English for any locale
set(source "${SCRATCH}/cxx17.cpp")
if(NOT HEADERS)
  message(FATAL_ERROR "HEADERS is empty")
endif()

# Compiles a header with these flags: heed must report `expected`.
function(refused header expected)
  file(WRITE "${source}" "#include <${header}>\n")
  execute_process(
    COMMAND "${COMPILER}" ${ARGN} -fsyntax-only -fdiagnostics-color=never -I "${INCLUDE}" "${source}"
    RESULT_VARIABLE result
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(header STREQUAL "heed/version.hpp")  # preprocessor only; any program may read the version
    if(NOT result EQUAL 0)
      message(FATAL_ERROR "<${header}> does not compile with ${ARGN}:\n${output}")
    endif()
    return()
  endif()
  string(REGEX MATCHALL "[^\n]+" lines "${output}")
  list(LENGTH lines count)
  string(REGEX MATCH "error: [^\n]*" first "${output}")
  if(result EQUAL 0 OR count GREATER 20 OR NOT first MATCHES "${expected}")
    list(SUBLIST lines 0 30 lines)
    list(JOIN lines "\n" lines)
    message(FATAL_ERROR "<${header}> with ${ARGN} (status ${result}) should say in 20 lines or fewer that ${expected}, and "
                        "says in ${count}:\n${lines}")
  endif()
endfunction()

foreach(header IN LISTS HEADERS)
  refused("${header}" "heed needs C\\+\\+20: compile with -std=c\\+\\+20" -std=c++17)
endforeach()
list(GET HEADERS 0 header)
foreach(header IN ITEMS "${header}" heed/attention.hpp)
  refused("${header}" "heed needs exceptions: .* compile without -fno-exceptions" -std=c++20 -fno-exceptions)
  refused("${header}" "heed needs g\\+\\+ 12, clang\\+\\+ 14 or later: .* MSVC" -std=c++20 -D_MSC_VER=1940)
endforeach()
