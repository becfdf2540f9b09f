# SPDX-License-Identifier: BSD-3-Clause
#
# cmake -DSOURCE_DIR=... -P kit.cmake: docs/kit.md quotes examples/kit.cpp, all of its sections and nothing else; all of
# its links exist.

file(READ "${SOURCE_DIR}/examples/kit.cpp" program)
file(READ "${SOURCE_DIR}/docs/kit.md" page)
string(REPLACE "\n    " "\n" unindented "${program}")  # sections are in functions, indented by four spaces

string(REGEX MATCHALL "// section: [a-z]+" sections "${program}")
foreach(section IN LISTS sections)
  set(found FALSE)
  foreach(text IN ITEMS "${program}" "${unindented}")
    string(FIND "${text}" "${section}\n" begin)
    string(LENGTH "${section}\n" length)
    math(EXPR begin "${begin} + ${length}")
    string(SUBSTRING "${text}" ${begin} -1 rest)
    string(FIND "${rest}" "// end\n" length)
    string(SUBSTRING "${rest}" 0 ${length} quoted)
    string(FIND "${page}" "```cpp\n${quoted}```" position)
    if(NOT position EQUAL -1)
      set(found TRUE)
    endif()
  endforeach()
  if(NOT found)
    message(SEND_ERROR "docs/kit.md does not quote this of examples/kit.cpp, ${section}:\n${quoted}")
  endif()
endforeach()
list(LENGTH sections count)
string(REGEX MATCHALL "```cpp" quotes "${page}")
list(LENGTH quotes quoted)
if(NOT quoted EQUAL count OR count EQUAL 0)
  message(SEND_ERROR "docs/kit.md has ${quoted} quotations, examples/kit.cpp ${count} sections")
endif()

string(REGEX MATCHALL "\\.\\./(include|examples)/[a-z0-9_/]+\\.[a-z]+|pictures/[a-z]+\\.[a-z]+" links "${page}")
foreach(link IN LISTS links)
  if(NOT EXISTS "${SOURCE_DIR}/docs/${link}")
    message(SEND_ERROR "docs/kit.md links ${link}, which does not exist")
  endif()
endforeach()
