# SPDX-License-Identifier: BSD-3-Clause
#
# Compiles SOURCE and checks the result.
#   EXPECT=warning-free   it must compile without a warning
#   EXPECT=as-marked      it must not compile, and each of its lines `// expect: <regex>` must match the
#                         compiler's output; or it has a line `// expect-ok` and must compile. The first line that
#                         begins with `// expect-first: <regex>` is matched with the first error; at most three more
#                         errors may follow, all in heed
#   EXPECT=as-released    it must compile, warnings or not
#   EXPECT=precompiled    the header SOURCE is precompiled for the other tests
#   PRECOMPILED=<header>  SOURCE may include it precompiled, from PRECOMPILED_DIRECTORY

cmake_minimum_required(VERSION 3.22)

foreach(directory IN LISTS SYSTEM_INCLUDES)
  # Passing the compiler's built-in directories again would break its #include_next.
  if(directory AND NOT directory STREQUAL INCLUDE AND NOT directory IN_LIST IMPLICIT_INCLUDES)
    list(APPEND includes -isystem "${directory}")
  endif()
endforeach()
list(TRANSFORM DEFINITIONS PREPEND -D)
# The flags are the same for all tests, since g++ accepts precompiled headers only with the flags that they were built
# with.
set(flags ${QUICKER} -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -fdiagnostics-color=never -fmessage-length=0)
if(EXPECT STREQUAL "precompiled")
  list(APPEND flags -x c++-header -o "${SOURCE}.gch")
else()
  list(APPEND flags -fsyntax-only)
endif()
if(PRECOMPILED)
  list(APPEND flags -include "${PRECOMPILED_DIRECTORY}/${PRECOMPILED}")
endif()

set(ENV{LC_ALL} C)  # messages in English for any locale
execute_process(
  COMMAND "${COMPILER}" ${flags} ${DEFINITIONS} -I "${INCLUDE}" ${includes} "${SOURCE}"
  RESULT_VARIABLE result
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output)

if(EXPECT MATCHES "^(warning-free|precompiled)$")
  if(NOT result EQUAL 0 OR NOT output STREQUAL "")
    message(FATAL_ERROR "${output}")
  endif()
  return()
endif()

if(EXPECT STREQUAL "as-released")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${SOURCE}, an example of a release, no longer compiles. A version that breaks programs is no "
                        "patch (before 1.0: a new minor version); CHANGELOG.md tells users what to write instead.\n${output}")
  endif()
  return()
endif()

file(READ "${SOURCE}" text)

# A unit includes several files that must not compile; the output must name each file.
string(REGEX MATCHALL "{\n#include \"[^\"]+\\.cpp\"" cases "${text}")
if(cases)
  if(result EQUAL 0)
    message(FATAL_ERROR "${SOURCE} compiled, but must not.")
  endif()
  foreach(case IN LISTS cases)
    string(REGEX REPLACE ".*\"([^\"]+)\"" "\\1" case "${case}")
    string(FIND "${output}" "${case}:" place)
    if(place EQUAL -1)
      message(FATAL_ERROR "${case}: compiled with other files, it causes no error.")
    endif()
    file(STRINGS "${case}" lines REGEX "^// expect: ")
    if(NOT lines)
      message(FATAL_ERROR "${case} has no line `// expect: <regex>`.")
    endif()
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^// expect: *" "" regex "${line}")
      if(NOT output MATCHES "${regex}")
        message(FATAL_ERROR "${case} fails to compile as required, but the compiler's output does not match\n  ${regex}\n"
                            "They are:\n${output}")
      endif()
    endforeach()
  endforeach()
  return()
endif()

set(rest "\n${text}")
set(expect_ok OFF)
if(rest MATCHES "\n// expect-ok")
  set(expect_ok ON)
endif()

set(expectations 0)
while(rest MATCHES "\n// expect: *([^\n]+)(.*)")
  set(regex "${CMAKE_MATCH_1}")
  set(rest "${CMAKE_MATCH_2}")
  math(EXPR expectations "${expectations} + 1")
  if(result EQUAL 0)
    message(FATAL_ERROR "${SOURCE} compiled, but must not.")
  endif()
  if(NOT output MATCHES "${regex}")
    message(FATAL_ERROR "${SOURCE} fails to compile as required, but the compiler's output does not match\n  ${regex}\n"
                        "They are:\n${output}")
  endif()
endwhile()

file(STRINGS "${SOURCE}" first_expected REGEX "^// expect-first: " LIMIT_COUNT 1)
if(first_expected)
  math(EXPR expectations "${expectations} + 1")
  string(REPLACE "// expect-first: " "" regex "${first_expected}")
  string(REPLACE ";" "," plain "${output}")  # ; separates list items
  string(REGEX MATCHALL "error: [^\n]*" errors "${plain}")
  string(REGEX MATCH "error: [^\n]*" first "${output}")
  list(LENGTH errors count)
  list(FILTER errors EXCLUDE REGEX "heed: ")
  list(LENGTH errors others)
  if(result EQUAL 0 OR count GREATER 4 OR others OR NOT first MATCHES "${regex}")
    message(FATAL_ERROR "The first of at most four errors, all in heed, must match\n  ${regex}\nThey are:\n${output}")
  endif()
endif()

if(expect_ok AND NOT result EQUAL 0)
  message(FATAL_ERROR "${SOURCE} must compile, but failed:\n${output}")
endif()
if((expect_ok AND expectations) OR NOT (expect_ok OR expectations))
  message(FATAL_ERROR "${SOURCE}: needs a line `// expect: <regex>` (several if all must match) or `// expect-ok`, not both")
endif()
