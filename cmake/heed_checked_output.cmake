# SPDX-License-Identifier: BSD-3-Clause
#
# heed_checked_output: linked into a program, it makes a standard output that cannot be written an error.
include_guard(GLOBAL)
add_library(heed_checked_output OBJECT "${CMAKE_CURRENT_LIST_DIR}/../tools/support/checked_output.cpp")
target_link_libraries(heed_checked_output PRIVATE heed_warnings_anywhere)
target_compile_features(heed_checked_output PRIVATE cxx_std_20)
