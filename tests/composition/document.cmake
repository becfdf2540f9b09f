# SPDX-License-Identifier: BSD-3-Clause
#
# cmake -DPROGRAM=... -DDOCUMENT=... -P document.cmake: docs/composition.md is what the program prints.

execute_process(COMMAND "${PROGRAM}" --markdown RESULT_VARIABLE result OUTPUT_VARIABLE printed ERROR_VARIABLE complaint)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "unit_composition --markdown failed (${result}):\n${complaint}")
endif()
set(document "")
if(EXISTS "${DOCUMENT}")
  file(READ "${DOCUMENT}" document)
endif()
if(NOT printed STREQUAL document)
  message(FATAL_ERROR "docs/composition.md is not what the products say any more. Read what changed, and write it again:\n"
                      "  unit_composition --markdown > docs/composition.md\n"
                      "(build/<preset>/tests/composition/unit_composition)")
endif()
