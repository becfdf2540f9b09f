# SPDX-License-Identifier: BSD-3-Clause
#
# cmake -DSOURCE_DIR=... -P readme.cmake: the code of README is that of programs that are compiled and run: at its start
# of examples/snippet.cpp, then of tests/translator/load.cpp. Its commands are run by tests/tool/raw.sh.

file(READ "${SOURCE_DIR}/README.md" readme)

# heed_quoted(<program> <end>): README has the lines between the marks in the program, followed by this.
function(heed_quoted program end)
  file(READ "${SOURCE_DIR}/${program}" text)
  if(NOT text MATCHES "// clang-format off\n(.*)\n *// clang-format on")
    message(FATAL_ERROR "${program}: the marks around the quoted lines are gone")
  endif()
  string(REPLACE "\n    " "\n" quoted "\n${CMAKE_MATCH_1}")
  string(FIND "${readme}" "${quoted}\n${end}" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "README.md no longer quotes ${program}. These lines are not in it:\n${quoted}")
  endif()
endfunction()
heed_quoted(examples/snippet.cpp "}")
heed_quoted(tests/translator/load.cpp "```")
string(REGEX MATCHALL "```cpp" snippets "${readme}")
list(LENGTH snippets count)
if(NOT count EQUAL 2)
  message(FATAL_ERROR "README.md has ${count} snippets of C++; 2 are compared")
endif()
