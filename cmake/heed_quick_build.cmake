# SPDX-License-Identifier: BSD-3-Clause
#
# heed_quick_build(<target> <source>): for quick builds, if HEED_EXAMPLE_OPTIMIZATION is set, applies it to programs with
# a long test, marked `// test, optimized:` or (in exhaustive builds) `// test, exhaustive:`. Other programs are compiled
# without optimization and with precompiled headers, in less than half of the time.
function(heed_quick_build target source)
  if(NOT HEED_EXAMPLE_OPTIMIZATION)
    return()
  endif()
  set(lines "^// test, optimized:")
  if(HEED_TEST_EXHAUSTIVE)
    set(lines "^// test, (optimized|exhaustive):")
  endif()
  file(STRINGS "${source}" long REGEX "${lines}" LIMIT_COUNT 1)
  if(long)
    target_compile_options(${target} PRIVATE ${HEED_EXAMPLE_OPTIMIZATION})
    return()
  endif()
  target_compile_options(${target} PRIVATE -O0)
  target_compile_definitions(${target} PRIVATE _GLIBCXX_ASSERTIONS)  # as the precompiled headers
  if(NOT TARGET heed_examples_precompiled)
    set(source "${PROJECT_BINARY_DIR}/heed_examples_precompiled.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "")
    add_library(heed_examples_precompiled OBJECT "${source}")
    target_link_libraries(heed_examples_precompiled PRIVATE heed::heed heed::io fmt::fmt heed_warnings)
    target_compile_options(heed_examples_precompiled PRIVATE -O0)
    target_compile_definitions(heed_examples_precompiled PRIVATE _GLIBCXX_ASSERTIONS)
    target_precompile_headers(heed_examples_precompiled PRIVATE <heed/heed.hpp> <fmt/format.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM heed_examples_precompiled)
endfunction()
