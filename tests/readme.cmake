# SPDX-License-Identifier: BSD-3-Clause
#
# cmake -DSOURCE_DIR=... -P readme.cmake: the code in README.md is quoted from programs that are compiled and run:
# examples/snippet.cpp and examples/start/main.cpp; in include/heed_translator/README.md, from
# tests/translator/load.cpp. Pages and examples do not contain a mistake that docs/how_to/what_goes_wrong.md warns
# about.

# heed_quoted(<page> <program> <end>...): the page contains each part of the program between clang-format's marks,
# followed by its end.
function(heed_quoted page program)
  file(READ "${SOURCE_DIR}/${page}" readme)
  file(READ "${SOURCE_DIR}/${program}" text)
  foreach(end IN LISTS ARGN)
    string(FIND "${text}" "// clang-format off\n" begin)
    string(FIND "${text}" "// clang-format on" last)
    if(begin EQUAL -1 OR last LESS begin)
      message(FATAL_ERROR "${program}: the marks around the quoted lines are missing")
    endif()
    math(EXPR begin "${begin} + 20")
    math(EXPR length "${last} - ${begin}")
    string(SUBSTRING "${text}" ${begin} ${length} quoted)
    string(REGEX REPLACE " +$" "" quoted "${quoted}")
    string(REPLACE "\n    " "\n" quoted "\n${quoted}")
    string(FIND "${readme}" "${quoted}${end}" position)
    if(position EQUAL -1)
      message(FATAL_ERROR "${page} no longer quotes ${program}. These lines are missing:\n${quoted}")
    endif()
    math(EXPR last "${last} + 10")
    string(SUBSTRING "${text}" ${last} -1 text)
  endforeach()
endfunction()
heed_quoted(README.md examples/snippet.cpp "}" "```")
heed_quoted(include/heed_translator/README.md tests/translator/load.cpp "```")
file(READ "${SOURCE_DIR}/README.md" readme)
file(READ "${SOURCE_DIR}/examples/start/main.cpp" program)
string(FIND "${program}" "#include" begin)
string(SUBSTRING "${program}" ${begin} -1 program)
string(FIND "${readme}" "```cpp\n${program}```" position)
if(position EQUAL -1)
  message(FATAL_ERROR "README.md no longer quotes examples/start/main.cpp")
endif()
string(REGEX MATCHALL "```cpp" snippets "${readme}")
list(LENGTH snippets count)
if(NOT count EQUAL 3)
  message(FATAL_ERROR "README.md has ${count} C++ snippets; this test compares 3")
endif()

# `array<float, 2> x({2, 3})` is a tensor of that shape, but `array<float, 1> x({3})` contains the number 3: use zeros
# and filled for shapes. A page may name the expression within a sentence.
file(GLOB_RECURSE taught "${SOURCE_DIR}/examples/*.cpp" "${SOURCE_DIR}/examples/*.hpp" "${SOURCE_DIR}/docs/*.md")
foreach(file IN LISTS taught ITEMS "${SOURCE_DIR}/README.md")
  file(STRINGS "${file}" lines REGEX "(^|[^`])array<[a-z]+, *[0-9]> *[a-zA-Z_]*\\({[^{]")
  if(lines)
    message(SEND_ERROR "${file}: write zeros<float>(2, 3), or filled<float, 2>({2, 3}, 1), not\n${lines}")
  endif()
endforeach()
