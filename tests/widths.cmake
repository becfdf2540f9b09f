# SPDX-License-Identifier: BSD-3-Clause
#
# Runs the kernel tests once more for each register width that the sources support, so that the result does not depend
# on the processor. The width that the other tests are compiled for is omitted; those that this processor cannot run are
# reported as skipped.

if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(HEED_TEST_WIDTHS "")
endif()

# The compiler's macros for each -march=..., and the required instructions.
set(heed_width_macro_x86-64 "defined(__SSE2__) && !defined(__AVX__)")
set(heed_width_macro_x86-64-v3 "defined(__AVX2__) && defined(__FMA__) && !defined(__AVX512F__)")
set(heed_width_macro_x86-64-v4 "defined(__AVX512F__)")
set(heed_width_needs_x86-64 sse2)
set(heed_width_needs_x86-64-v3 avx2 fma bmi bmi2)
set(heed_width_needs_x86-64-v4 avx512f avx512bw avx512cd avx512dq avx512vl)

set(heed_width_kernels
    kernels/additive kernels/block_sums kernels/coverage kernels/cross_entropy kernels/dot kernels/gated_linear kernels/layer_norm
    kernels/linear_attention kernels/optimizers kernels/per_dimension kernels/recurrent
    kernels/rows kernels/softmax kernels/sparse kernels/top_k_words kernels/weighted_sum kernels/tiles/entmax_rule simd/dual_pack
    simd/accuracy simd/bfloat16 simd/lookup simd/registers simd/dual_registers simd/simd simd/trig gemm/int8_panels gemm/panels gemm/weight_panels)

# heed_width_tests(<name> <path>...): these tests for this width, as one unit if unit tests are compiled together.
macro(heed_width_tests name)
  if(HEED_TEST_FILES_PER_UNIT GREATER 1)
    heed_width_program(${name} ${ARGN})
  else()
    foreach(path ${ARGN})
      string(REPLACE "/" "_" program ${path})
      heed_width_program(${program} ${path})
    endforeach()
  endif()
endmacro()

function(heed_width_program name)
  set(program "${name}_${width}")
  if(runs)
    set(source "${ARGN}.cpp")
    if(ARGC GREATER 2)
      heed_unit_source(${program} ${ARGN})
      set(source "${CMAKE_CURRENT_BINARY_DIR}/units/${program}.cpp")
    endif()
    add_executable(${program} "${source}")
    target_link_libraries(${program} PRIVATE heed::heed heed_test_main heed_warnings_anywhere)
    target_include_directories(${program} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
    target_compile_options(${program} PRIVATE ${flags} ${optimized})
  endif()
  foreach(path ${ARGN})
    string(REPLACE "/" "." test "${HEED_TEST_PREFIX}${path}.${width}")
    if(runs)
      add_test(NAME "${test}" COMMAND ${program} "--source-file=*/tests/${path}.cpp")
      set_tests_properties("${test}" PROPERTIES TIMEOUT 600 LABELS unit ENVIRONMENT "OPENBLAS_NUM_THREADS=1"
                                                FAIL_REGULAR_EXPRESSION "test cases: +0 ")
    else()
      add_test(NAME "${test}" COMMAND "${CMAKE_COMMAND}" -E echo "This processor cannot run ${width}.")
      set_tests_properties("${test}" PROPERTIES LABELS unit SKIP_REGULAR_EXPRESSION "cannot run")
    endif()
  endforeach()
endfunction()

foreach(width IN LISTS HEED_TEST_WIDTHS)
  set(runs ON)
  if(width STREQUAL portable)
    set(flags -DHEED_SIMD_PORTABLE)
  elseif(width STREQUAL native)
    set(flags -march=native)
    if(HEED_NATIVE)
      continue()
    endif()
  else()
    set(flags "-march=${width}")
    string(MAKE_C_IDENTIFIER "HEED_${width}_NATIVE_${HEED_NATIVE}" variable)
    # The width that heed_warnings compiles for.
    string(REPLACE ";" " " CMAKE_REQUIRED_FLAGS "${heed_native_flags}")
    check_cxx_source_compiles("
      #if !(${heed_width_macro_${width}})
      #error
      #endif
      int main() {}" ${variable}_IS_DEFAULT)
    unset(CMAKE_REQUIRED_FLAGS)
    if(${variable}_IS_DEFAULT)
      continue()
    endif()
    list(TRANSFORM heed_width_needs_${width} REPLACE "(.+)" "__builtin_cpu_supports(\"\\1\")" OUTPUT_VARIABLE supported)
    list(JOIN supported " && " supported)
    check_cxx_source_runs("int main() { return ${supported} ? 0 : 1; }" ${variable}_RUNS)
    set(runs ${${variable}_RUNS})
  endif()

  # Lightly optimized, for quick builds: optimized code is tested above. Tiles and tables compile to much code per
  # width.
  set(optimized -O1)
  # With sanitizers -O1 takes several times as long to compile; portable code has no intrinsics to combine.
  if(HEED_SANITIZE OR width STREQUAL portable)
    set(optimized -O0)
  endif()
  heed_width_tests(kernels ${heed_width_kernels})
  heed_width_tests(gemm_kernel gemm/gemm_kernel)  # without a BLAS
  set(optimized -O0)
  set(tiles simd/lookup_table kernels/tiles/normalizer_rules kernels/tiles/selection kernels/tiles/tiles kernels/tiles/products
            kernels/tiles/bfloat16_products kernels/tiles/transpose)
  # These tests have the most code. They use only lanes, which the tests above check at each width.
  if(HEED_TEST_EXHAUSTIVE OR width STREQUAL native)
    list(APPEND tiles ops/tiles kernels/tiles/comparisons)
  endif()
  heed_width_tests(tiles ${tiles})
endforeach()

# Products of bytes have a separate version for AVX-VNNI, which is not a level of x86-64.
if(HEED_TEST_WIDTHS MATCHES "x86-64-v3")
  set(test "${HEED_TEST_PREFIX}kernels.int8_panels.avx-vnni")
  set(CMAKE_REQUIRED_FLAGS "-march=x86-64-v3 -mavxvnni")
  check_cxx_source_runs("
    #include <cpuid.h>
    #if !defined(__AVXVNNI__)
    #error
    #endif
    int main()
    {
      unsigned a = 0, b, c, d;
      return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 16) && __builtin_cpu_supports(\"avx2\") ? 0 : 1;
    }" HEED_RUNS_AVX_VNNI)
  unset(CMAKE_REQUIRED_FLAGS)
  if(HEED_RUNS_AVX_VNNI)
    add_executable(gemm_int8_panels_avx_vnni gemm/int8_panels.cpp)
    target_link_libraries(gemm_int8_panels_avx_vnni PRIVATE heed::heed heed_test_main heed_warnings_anywhere)
    target_include_directories(gemm_int8_panels_avx_vnni PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
    target_compile_options(gemm_int8_panels_avx_vnni PRIVATE -march=x86-64-v3 -mavxvnni -O1)
    add_test(NAME "${test}" COMMAND gemm_int8_panels_avx_vnni)
    set_tests_properties("${test}" PROPERTIES TIMEOUT 600 LABELS unit ENVIRONMENT "OPENBLAS_NUM_THREADS=1")
  else()
    add_test(NAME "${test}" COMMAND "${CMAKE_COMMAND}" -E echo "This processor cannot run AVX-VNNI.")
    set_tests_properties("${test}" PROPERTIES LABELS unit SKIP_REGULAR_EXPRESSION "cannot run")
  endif()
endif()
