# SPDX-License-Identifier: BSD-3-Clause
#
# cmake -DSOURCE_DIR=... -P readme.cmake: the code at the start of README is that of examples/snippet.cpp, which is
# compiled and run.

file(READ "${SOURCE_DIR}/examples/snippet.cpp" snippet)
file(READ "${SOURCE_DIR}/README.md" readme)
if(NOT snippet MATCHES "// clang-format off\n(.*)\n        // clang-format on")
  message(FATAL_ERROR "examples/snippet.cpp: the marks around the quoted lines are gone")
endif()
string(REPLACE "\n    " "\n" quoted "\n${CMAKE_MATCH_1}")
string(FIND "${readme}" "${quoted}\n}" position)
if(position EQUAL -1)
  message(FATAL_ERROR "README.md no longer quotes examples/snippet.cpp. These lines are not in it:\n${quoted}")
endif()
