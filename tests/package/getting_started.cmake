# SPDX-License-Identifier: BSD-3-Clause
#
# cmake -DSOURCE_DIR=... -DSCRATCH=... -DGENERATOR=... -P getting_started.cmake: docs/start/getting_started.md works.
# Its commands are run verbatim, except for `git clone`, in an empty folder; its program is examples/start/main.cpp, and
# the page shows the program's output. Headers are installed on a machine without the libraries that only tests and
# examples need.

cmake_minimum_required(VERSION 3.22)
file(READ "${SOURCE_DIR}/docs/start/getting_started.md" page)
file(READ "${SOURCE_DIR}/examples/start/main.cpp" program)
string(REGEX REPLACE "^.*// test:\n\n" "" program "${program}")
string(FIND "${page}" "```cpp\n${program}```\n" at)
if(at EQUAL -1)
  message(FATAL_ERROR "docs/start/getting_started.md does not quote examples/start/main.cpp")
endif()

# run(<commands>): stores their output in `output`.
function(run commands)
  execute_process(COMMAND sh -ec "${commands}" WORKING_DIRECTORY "${SCRATCH}" RESULT_VARIABLE result
                  OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "these commands of docs/start/getting_started.md fail (${result}):\n${commands}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

if(NOT page MATCHES "\n```sh\n(git clone URL heed\n)([^`]*)```\n")
  message(FATAL_ERROR "docs/start/getting_started.md does not begin with git clone URL heed")
endif()
set(commands "${CMAKE_MATCH_2}")
string(REGEX MATCH "\n```sh\n(cmake[^`]*)```\n" ignored "${page}")
set(installing "${CMAKE_MATCH_1}")
string(REGEX MATCH "\n```\n(weights[^`]*)```\n" ignored "${page}")
set(printed "${CMAKE_MATCH_1}")

file(REMOVE_RECURSE "${SCRATCH}")
file(MAKE_DIRECTORY "${SCRATCH}")
file(CREATE_LINK "${SOURCE_DIR}" "${SCRATCH}/heed" SYMBOLIC)
set(ENV{HOME} "${SCRATCH}/home")
set(ENV{OPENBLAS_NUM_THREADS} 1)
set(ENV{CMAKE_GENERATOR} "${GENERATOR}")  # the page installs make; this machine may have only Ninja
run("${commands}")
string(FIND "${output}" "${printed}" at)
if(printed STREQUAL "" OR at EQUAL -1)
  message(FATAL_ERROR "the program should print\n${printed}but printed:\n${output}")
endif()

# A machine that has only the library's dependencies.
set(lacking "")
foreach(package IN ITEMS doctest CLI11 fmt nlohmann_json ICU benchmark MPI)
  string(APPEND lacking " -DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON")
endforeach()
string(REPLACE "cmake -S heed -B" "cmake -S heed${lacking} -B" installing "${installing}")
file(REMOVE_RECURSE "${SCRATCH}/mine/build")
run("${installing}")
file(STRINGS "${SCRATCH}/mine/build/CMakeCache.txt" found REGEX "^heed_DIR:")
if(NOT found MATCHES "${SCRATCH}/home/.local/share/cmake/heed")
  message(FATAL_ERROR "the program did not find the installed heed: ${found}\n${output}")
endif()
