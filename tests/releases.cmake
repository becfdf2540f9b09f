# SPDX-License-Identifier: BSD-3-Clause
#
# The examples of releases, taken from their tags, compile with today's headers as long as the version promises it:
# 0.2.3 compiles the programs of 0.2.0 to 0.2.2, 0.3.0 need not (from 1.0 on, 1.5.0 compiles those of 1.0 to 1.4). Those
# of 0.2 compile after scripts/update_names.sh. Without the repository's tags, as in a source archive, the test does
# nothing.

find_package(Git QUIET)
string(REGEX MATCH "^(0\\.[0-9]+|[1-9][0-9]*)\\." promised "${PROJECT_VERSION}")
set(tags)
if(Git_FOUND AND EXISTS "${PROJECT_SOURCE_DIR}/.git")
  execute_process(COMMAND "${GIT_EXECUTABLE}" tag --list "v${promised}*" "v0.2.*"
                  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE tags OUTPUT_STRIP_TRAILING_WHITESPACE
                  ERROR_QUIET)
  string(REPLACE "\n" ";" tags "${tags}")
endif()
foreach(tag IN LISTS tags)
  set(released "${CMAKE_CURRENT_BINARY_DIR}/releases/${tag}")
  file(REMOVE_RECURSE "${released}")
  file(MAKE_DIRECTORY "${released}")
  execute_process(COMMAND "${GIT_EXECUTABLE}" archive --format=tar -o "${released}.tar" "${tag}" examples
                  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}" COMMAND_ERROR_IS_FATAL ANY)
  file(ARCHIVE_EXTRACT INPUT "${released}.tar" DESTINATION "${released}")
  # These include only public headers and adjacent files.
  foreach(program IN ITEMS snippet own_policy own_kernel kit course/03_your_own_score)
    set(source "${released}/examples/${program}.cpp")
    if(EXISTS "${source}")
      if(tag MATCHES "^v0\\.2\\.")
        execute_process(COMMAND bash "${PROJECT_SOURCE_DIR}/scripts/update_names.sh" "${source}"
                        COMMAND_ERROR_IS_FATAL ANY)
      endif()
      string(REPLACE "/" "." name "${HEED_TEST_PREFIX}release.${tag}.${program}")
      add_test(NAME "${name}" COMMAND ${heed_compile} "-DSOURCE=${source}" -DEXPECT=as-released
                                      -DPRECOMPILED=heed/heed.hpp -P "${CMAKE_CURRENT_SOURCE_DIR}/compile.cmake")
      set_tests_properties("${name}" PROPERTIES TIMEOUT 600 LABELS static
                                                FIXTURES_REQUIRED "${HEED_TEST_PREFIX}heed/heed.hpp")
    endif()
  endforeach()
endforeach()
