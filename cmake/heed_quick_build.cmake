# SPDX-License-Identifier: BSD-3-Clause
#
# heed_quick_build(<target> <source>): for quick builds, where HEED_EXAMPLE_OPTIMIZATION is set, it applies to a program
# that is tested for what takes long, `// test, optimised:`. Others are not optimised: that halves the time to compile them.
function(heed_quick_build target source)
  if(NOT HEED_EXAMPLE_OPTIMIZATION)
    return()
  endif()
  file(STRINGS "${source}" long REGEX "^// test, optimised:" LIMIT_COUNT 1)
  if(long)
    target_compile_options(${target} PRIVATE ${HEED_EXAMPLE_OPTIMIZATION})
  else()
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()
