# SPDX-License-Identifier: BSD-3-Clause
#
# cmake -DSOURCE_DIR=... -DPAGE=docs/... -DPROGRAM=... [-DNOTHING_ELSE=ON] -P quotes.cmake: the page quotes all sections
# of the program (with NOTHING_ELSE no other code), and its links are valid. PAGE may be several pages, separated by
# commas: each section is in one page.

file(READ "${SOURCE_DIR}/${PROGRAM}" program)
string(REPLACE "," ";" pages "${PAGE}")
set(page "")
foreach(one IN LISTS pages)
  file(READ "${SOURCE_DIR}/${one}" text)
  string(APPEND page "${text}\n")
endforeach()
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
    message(SEND_ERROR "${PAGE} does not quote section ${section} of ${PROGRAM}:\n${quoted}")
  endif()
endforeach()
list(LENGTH sections count)
string(REGEX MATCHALL "```cpp" quotes "${page}")
list(LENGTH quotes quoted)
if(count EQUAL 0 OR (NOTHING_ELSE AND NOT quoted EQUAL count))
  message(SEND_ERROR "${PAGE} has ${quoted} quotations, ${PROGRAM} ${count} sections")
endif()

list(GET pages 0 first)
get_filename_component(folder "${first}" DIRECTORY)  # all pages are in one folder
string(REGEX MATCHALL "(\\.\\./)+(include|examples|docs|pictures)/[a-z0-9_/]+\\.[a-z]+" links "${page}")
foreach(link IN LISTS links)
  if(NOT EXISTS "${SOURCE_DIR}/${folder}/${link}")
    message(SEND_ERROR "${PAGE} links ${link}, which does not exist")
  endif()
endforeach()
