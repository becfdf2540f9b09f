# SPDX-License-Identifier: BSD-3-Clause
#
# cmake -DPROGRAM=... -DDOCUMENT=... -P document.cmake: docs/explanation/composition.md equals the program's output.

execute_process(COMMAND "${PROGRAM}" --markdown RESULT_VARIABLE result OUTPUT_VARIABLE printed ERROR_VARIABLE complaint)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "composition_products --markdown failed (${result}):\n${complaint}")
endif()
set(document "")
if(EXISTS "${DOCUMENT}")
  file(READ "${DOCUMENT}" document)
endif()
if(NOT printed STREQUAL document)
  message(FATAL_ERROR "docs/explanation/composition.md differs from the program's output. Review the changes and regenerate it:\n"
                      "  composition_products --markdown > docs/explanation/composition.md\n"
                      "(build/<preset>/tests/products/composition_products)")
endif()
