# SPDX-License-Identifier: BSD-3-Clause
#
# The single header of scripts/single_header.sh, alone: a program that uses each folder, without a BLAS and without
# warnings; all of it with xtensor-blas; no symbol that two units would define twice; and an error for mixing it with
# the separate headers.

cmake_minimum_required(VERSION 3.22)

foreach(directory IN LISTS SYSTEM_INCLUDES)
  # Passing the compiler's built-in directories again would break its #include_next.
  if(directory AND NOT directory STREQUAL "${HEED_SOURCE}/include" AND NOT directory IN_LIST IMPLICIT_INCLUDES)
    list(APPEND includes -isystem "${directory}")
  endif()
endforeach()
set(flags ${QUICKER} -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -fdiagnostics-color=never ${includes})
set(single "-I${SCRATCH}/single_include")
set(ENV{LC_ALL} C)

function(compile what)
  execute_process(COMMAND "${COMPILER}" ${flags} ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(output "${output}" PARENT_SCOPE)
  set(result "${result}" PARENT_SCOPE)
  if(what AND NOT result EQUAL 0)
    message(FATAL_ERROR "${what}:\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE "${SCRATCH}")
file(MAKE_DIRECTORY "${SCRATCH}")
set(header "${SCRATCH}/single_include/heed/heed.hpp")
execute_process(COMMAND bash "${HEED_SOURCE}/scripts/single_header.sh" "${header}" COMMAND_ERROR_IS_FATAL ANY)
set(here "${CMAKE_CURRENT_LIST_DIR}/single_header")
compile("the program with the single header" -DHEED_BLAS_NONE ${single} -c "${here}/program.cpp" -o "${SCRATCH}/program.o")
# Functions that are not inline would be defined again in a second unit.
execute_process(COMMAND "${NM}" --defined-only --extern-only --demangle "${SCRATCH}/program.o" OUTPUT_VARIABLE symbols
                COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "\n[0-9a-f]+ [ABCDGRST] [^\n]+" strong "\n${symbols}")
list(TRANSFORM strong REPLACE "^\n[0-9a-f]+ . " "")
if(NOT strong STREQUAL "main")
  list(JOIN strong "\n" strong)
  message(FATAL_ERROR "main must be the only strong symbol, but there are:\n${strong}")
endif()
compile("linking it" "${SCRATCH}/program.o" -pthread -o "${SCRATCH}/program")
execute_process(COMMAND "${SCRATCH}/program" RESULT_VARIABLE result OUTPUT_VARIABLE output)
if(NOT result EQUAL 0 OR NOT output MATCHES "^heed ${HEED_VERSION}: ")
  message(FATAL_ERROR "the program should greet with heed ${HEED_VERSION}, but printed (${result}):\n${output}")
endif()
compile("the single header and a BLAS" ${DEFINITIONS} ${single} -fsyntax-only "${here}/product.cpp")

# mixes(<lines>): the compiler's first error explains the problem.
function(mixes lines)
  file(WRITE "${SCRATCH}/mixes.cpp" "${lines}")
  compile("" "-I${HEED_SOURCE}" "-I${HEED_SOURCE}/include" "-I${SCRATCH}" -fsyntax-only "${SCRATCH}/mixes.cpp")
  string(REGEX MATCH "error: [^\n]*" first "${output}")
  if(result EQUAL 0 OR NOT first MATCHES "heed: .*single header.*include one or the other")
    message(FATAL_ERROR "mixing the single header with other headers should give one clear error; the compiler printed:\n${output}")
  endif()
endfunction()
mixes("#include <include/heed/core/cxx20.hpp>\n#include <single_include/heed/heed.hpp>\n")
mixes("#define HEED_SINGLE_HEADER  // as its last line does\n#include <include/heed/core/cxx20.hpp>\n")
file(STRINGS "${header}" last REGEX "^#define HEED_SINGLE_HEADER")
if(NOT last)
  message(FATAL_ERROR "the single header does not define HEED_SINGLE_HEADER")
endif()
