# SPDX-License-Identifier: BSD-3-Clause
#
# cmake -DSOURCE_DIR=... -P readme.cmake: the code of README is that of programs that are compiled and run: at its start
# of examples/snippet.cpp and examples/q_k_v.cpp, then of tests/translator/load.cpp. Its commands are run by tests/tools/raw.sh. And what it, the
# pages and the examples teach is not what docs/how_to/what_goes_wrong.md warns of.

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
heed_quoted(examples/q_k_v.cpp "```")
heed_quoted(tests/translator/load.cpp "```")
string(REGEX MATCHALL "```cpp" snippets "${readme}")
list(LENGTH snippets count)
if(NOT count EQUAL 3)
  message(FATAL_ERROR "README.md has ${count} snippets of C++; 3 are compared")
endif()

# `array<float, 2> x({2, 3})` is a tensor of that shape, `array<float, 1> x({3})` the number 3: zeros and filled are for
# shapes. A page may name it within a sentence.
file(GLOB_RECURSE taught "${SOURCE_DIR}/examples/*.cpp" "${SOURCE_DIR}/examples/*.hpp" "${SOURCE_DIR}/docs/*.md")
foreach(file IN LISTS taught ITEMS "${SOURCE_DIR}/README.md")
  file(STRINGS "${file}" lines REGEX "(^|[^`])array<[a-z]+, *[0-9]> *[a-zA-Z_]*\\({[^{]")
  if(lines)
    message(SEND_ERROR "${file}: say zeros<float>(2, 3), or filled<float, 2>({2, 3}, 1), not\n${lines}")
  endif()
endforeach()
