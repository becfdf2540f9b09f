# SPDX-License-Identifier: BSD-3-Clause
#
# cmake -DSOURCE_DIR=... -P from_the_papers.cmake: what docs/from_the_papers.md links exists. Each `a::name` is declared
# in the header that it links; each decision is a section; each header of include/heed/papers is linked, and each has a
# twin in PyTorch.

cmake_policy(VERSION 3.22)
set(faults 0)
macro(fault text)
  message(SEND_ERROR "docs/from_the_papers.md: ${text}")
  math(EXPR faults "${faults} + 1")
endmacro()

file(READ "${SOURCE_DIR}/docs/from_the_papers.md" page)
string(REGEX REPLACE "[][;]" " " page "${page}")  # these mean something in lists

# Links to headers: the name is there, outside of comments.
string(REGEX MATCHALL "`[a-z0-9_:]+` ?\\(\\.\\./include/heed/[a-z0-9_/]+\\.hpp" links "${page}")
list(REMOVE_DUPLICATES links)
list(LENGTH links count)
if(count LESS 100)
  fault("only ${count} names with headers were found in it")
endif()
foreach(link IN LISTS links)
  string(REGEX MATCH "^`([a-z0-9_:]+)` ?\\(\\.\\./(.*)$" ignored "${link}")
  set(name "${CMAKE_MATCH_1}")
  set(header "${CMAKE_MATCH_2}")
  if(NOT EXISTS "${SOURCE_DIR}/${header}")
    fault("${name} links ${header}, which does not exist")
    continue()
  endif()
  file(READ "${SOURCE_DIR}/${header}" text)
  string(REGEX REPLACE "[][;]" " " text "${text}")
  string(REGEX REPLACE "//[^\n]*" "" text "${text}")
  string(REGEX REPLACE "^.*::" "" last "${name}")
  if(NOT text MATCHES "(struct|class|auto|using|constexpr [a-z_:]+) ${last}[^a-z0-9_]")
    fault("${header} does not declare ${last}, as `${name}` says")
  endif()
  string(REGEX REPLACE "::[a-z0-9_]+$" "" spaces "${name}")
  string(REGEX REPLACE "^.*::" "" space "${spaces}")
  if(NOT spaces STREQUAL name AND NOT text MATCHES "namespace ([a-z0-9_]+::)*${space} {")
    fault("${header} has no namespace ${space}, as `${name}` says")
  endif()
endforeach()

# Links to decisions: a heading in lower case, with hyphens for blanks and without other signs.
file(STRINGS "${SOURCE_DIR}/docs/decisions.md" headings REGEX "^##+ ")
set(anchors "")
foreach(heading IN LISTS headings)
  string(REGEX REPLACE "^##+ " "" heading "${heading}")
  string(TOLOWER "${heading}" heading)
  string(REGEX REPLACE "[^a-z0-9 -]" "" heading "${heading}")
  string(REPLACE " " "-" heading "${heading}")
  list(APPEND anchors "${heading}")
endforeach()
string(REGEX MATCHALL "decisions\\.md#[a-z0-9-]+" links "${page}")
foreach(link IN LISTS links)
  string(REPLACE "decisions.md#" "" anchor "${link}")
  if(NOT anchor IN_LIST anchors)
    fault("docs/decisions.md has no section #${anchor}")
  endif()
endforeach()

# No paper is missing, here or among the twins.
file(GLOB headers RELATIVE "${SOURCE_DIR}/include/heed" "${SOURCE_DIR}/include/heed/papers/*.hpp")
foreach(header IN LISTS headers)
  string(FIND "${page}" "(../include/heed/${header})" position)
  if(position EQUAL -1)
    fault("${header} is not linked")
  endif()
  get_filename_component(paper "${header}" NAME_WE)
  if(NOT EXISTS "${SOURCE_DIR}/examples/twins/${paper}.py")
    fault("examples/twins/${paper}.py, the twin of ${header}, does not exist")
  endif()
endforeach()

if(faults EQUAL 0)
  message(STATUS "${count} names")
endif()
