# SPDX-License-Identifier: BSD-3-Clause
#
# The single header that scripts/single_header.sh makes, alone: two translation units of one program, without a BLAS and without a warning; what else
# it holds, with xtensor-blas; and a word to those who mix it with the headers of the folder.

cmake_minimum_required(VERSION 3.22)

foreach(directory IN LISTS SYSTEM_INCLUDES)
  # Naming the compiler's own directories again would break its #include_next.
  if(directory AND NOT directory STREQUAL "${HEED_SOURCE}/include" AND NOT directory IN_LIST IMPLICIT_INCLUDES)
    list(APPEND includes -isystem "${directory}")
  endif()
endforeach()
set(flags -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -fdiagnostics-color=never ${includes})
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
set(consumer "${CMAKE_CURRENT_LIST_DIR}/consumer")
foreach(unit IN ITEMS main other)
  compile("${unit}.cpp with the single header" -DHEED_BLAS_NONE ${single} -c "${consumer}/${unit}.cpp" -o "${SCRATCH}/${unit}.o")
endforeach()
compile("the two as one program" "${SCRATCH}/main.o" "${SCRATCH}/other.o" -pthread -o "${SCRATCH}/program")
execute_process(COMMAND "${SCRATCH}/program" RESULT_VARIABLE result OUTPUT_VARIABLE output)
if(NOT result EQUAL 0 OR NOT output MATCHES "^heed ${HEED_VERSION}: ")
  message(FATAL_ERROR "the program of two units should greet with heed ${HEED_VERSION}, and said (${result}):\n${output}")
endif()
compile("what the single header holds" ${DEFINITIONS} ${single} -fsyntax-only
        "${CMAKE_CURRENT_LIST_DIR}/single_header/holds.cpp")

# mixes(<lines>): the compiler's first error says what is wrong.
function(mixes lines)
  file(WRITE "${SCRATCH}/mixes.cpp" "${lines}")
  compile("" "-I${HEED_SOURCE}" "-I${SCRATCH}" -fsyntax-only "${SCRATCH}/mixes.cpp")
  string(REGEX MATCH "error: [^\n]*" first "${output}")
  if(result EQUAL 0 OR NOT first MATCHES "heed: .*single header.*include one or the other")
    message(FATAL_ERROR "the single header beside others should be refused in a sentence; the compiler said:\n${output}")
  endif()
endfunction()
mixes("#include <include/heed/core/cxx20.hpp>\n#include <single_include/heed/heed.hpp>\n")
mixes("#define HEED_SINGLE_HEADER  // as its last line does\n#include <include/heed/core/cxx20.hpp>\n")
file(STRINGS "${header}" last REGEX "^#define HEED_SINGLE_HEADER")
if(NOT last)
  message(FATAL_ERROR "the single header does not define HEED_SINGLE_HEADER")
endif()
