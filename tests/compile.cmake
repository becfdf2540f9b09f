# SPDX-License-Identifier: BSD-3-Clause
#
# Compiles SOURCE (no object file) and judges the outcome.
#   EXPECT=warning-free   it must compile without output, warnings on
#   EXPECT=as-marked      it must not compile, and each of its lines `// expect: <regex>` must match the
#                         compiler's output; or it has a line `// expect-ok` and must compile

cmake_minimum_required(VERSION 3.22)

foreach(directory IN LISTS SYSTEM_INCLUDES)
  # Naming the compiler's own directories again would break its #include_next.
  if(directory AND NOT directory STREQUAL INCLUDE AND NOT directory IN_LIST IMPLICIT_INCLUDES)
    list(APPEND includes -isystem "${directory}")
  endif()
endforeach()
list(TRANSFORM DEFINITIONS PREPEND -D)
if(EXPECT STREQUAL "warning-free")
  set(warnings -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
endif()

set(ENV{LC_ALL} C)  # messages in English, whatever the locale
execute_process(
  COMMAND "${COMPILER}" -std=c++20 -fsyntax-only -fdiagnostics-color=never -fmessage-length=0 ${warnings} ${DEFINITIONS}
          -I "${INCLUDE}" ${includes} "${SOURCE}"
  RESULT_VARIABLE result
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output)

if(EXPECT STREQUAL "warning-free")
  if(NOT result EQUAL 0 OR NOT output STREQUAL "")
    message(FATAL_ERROR "${output}")
  endif()
  return()
endif()

file(READ "${SOURCE}" rest)
string(PREPEND rest "\n")
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
    message(FATAL_ERROR "${SOURCE} compiled; it must not.")
  endif()
  if(NOT output MATCHES "${regex}")
    message(FATAL_ERROR "${SOURCE} does not compile, as it must not, but the compiler's output does not match\n  ${regex}\n"
                        "They are:\n${output}")
  endif()
endwhile()

if(expect_ok AND NOT result EQUAL 0)
  message(FATAL_ERROR "${SOURCE} must compile, but:\n${output}")
endif()
if((expect_ok AND expectations) OR NOT (expect_ok OR expectations))
  message(FATAL_ERROR "${SOURCE}: needs a line `// expect: <regex>` (several if all must match) or `// expect-ok`, not both")
endif()
