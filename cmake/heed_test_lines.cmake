# SPDX-License-Identifier: BSD-3-Clause
#
# heed_test_lines(<source> <label> <name> <program>): adds a test for each line `// test: <arguments>` in a program's
# source, which runs the program with these arguments in a separate folder. `// test, optimized: <arguments>` adds it only
# without sanitizers, `// test, exhaustive: <arguments>` only without sanitizers and with HEED_TEST_EXHAUSTIVE. The tests
# are named <name>, <name>.2, …, and have the label <label>.

function(heed_test_lines source label name program)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  set(tests "^// test:[ ]*")
  if(NOT HEED_SANITIZE AND HEED_TEST_EXHAUSTIVE)
    set(tests "^// test(, optimized|, exhaustive)?:[ ]*")
  elseif(NOT HEED_SANITIZE)
    set(tests "^// test(, optimized)?:[ ]*")
  endif()
  file(STRINGS "${source}" lines REGEX "${tests}")
  set(number 0)
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "${tests}" "" arguments "${line}")
    separate_arguments(arguments UNIX_COMMAND "${arguments}")
    math(EXPR number "${number} + 1")
    set(test "${name}")
    if(number GREATER 1)
      string(APPEND test ".${number}")
    endif()
    heed_program_test("${test}" "${label}" ${program} ${arguments})
  endforeach()
endfunction()

# heed_program_test(<name> <label> <program> [<argument>...])
function(heed_program_test name label)
  set(directory "${CMAKE_CURRENT_BINARY_DIR}/run/${name}")
  file(MAKE_DIRECTORY "${directory}")
  set(test "${HEED_TEST_PREFIX}${label}.${name}")
  add_test(NAME ${test} COMMAND ${ARGN} WORKING_DIRECTORY "${directory}")
  set_tests_properties(${test} PROPERTIES TIMEOUT 300 LABELS ${label} ENVIRONMENT "OPENBLAS_NUM_THREADS=1")
endfunction()
