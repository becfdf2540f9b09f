# SPDX-License-Identifier: BSD-3-Clause
#
# heed::compiled: the kernel tests, compiled for generic x86-64, with the kernels of each target.

get_target_property(type heed_compiled TYPE)
if(type STREQUAL "INTERFACE_LIBRARY")
  return()
endif()

set(compiled_sse2 "1")
set(compiled_avx2 "__builtin_cpu_supports(\"avx2\") && __builtin_cpu_supports(\"fma\") && __builtin_cpu_supports(\"bmi2\")")
set(compiled_avx512 "__builtin_cpu_supports(\"avx512f\") && __builtin_cpu_supports(\"avx512bw\") && __builtin_cpu_supports(\"avx512dq\")")
set(compiled_avx512_vnni "${compiled_avx512} && __builtin_cpu_supports(\"avx512vnni\")")

set(compiled_avx512_bf16 "${compiled_avx512_vnni} && __builtin_cpu_supports(\"avx512bf16\")")
set(compiled_avx512_amx "${compiled_avx512_bf16} && __get_cpuid_count(7, 0, x, x + 1, x + 2, x + 3) && (x[3] >> 22 & 5) == 5")

# heed_compiled_program(<name> <path>...): runs with each target, and with those in `wider`.
function(heed_compiled_program name)
  heed_unit_source(${name} ${ARGN})
  add_executable(${name} "${CMAKE_CURRENT_BINARY_DIR}/units/${name}.cpp")
  target_link_libraries(${name} PRIVATE heed::compiled heed_test_main heed_warnings_anywhere)
  target_include_directories(${name} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  target_compile_options(${name} PRIVATE -O0)
  foreach(target IN ITEMS sse2 avx2 avx512 avx512_vnni ${wider})
    check_cxx_source_runs("#include <cpuid.h>\nint main() { [[maybe_unused]] unsigned x[4]; return ${compiled_${target}} ? 0 : 1; }" HEED_RUNS_COMPILED_${target})
    set(test "${HEED_TEST_PREFIX}${name}.${target}")
    if(HEED_RUNS_COMPILED_${target})
      # One test compares bits with those of the instructions that its own file is compiled for.
      add_test(NAME "${test}" COMMAND ${name} "--test-case-exclude=values that are some registers wide*")
      set_tests_properties("${test}" PROPERTIES TIMEOUT 600 LABELS unit FAIL_REGULAR_EXPRESSION "test cases: +0 "
                                                ENVIRONMENT "OPENBLAS_NUM_THREADS=1;HEED_COMPILED_TARGET=${target}")
    else()
      add_test(NAME "${test}" COMMAND "${CMAKE_COMMAND}" -E echo "This processor cannot run ${target}.")
      set_tests_properties("${test}" PROPERTIES LABELS unit SKIP_REGULAR_EXPRESSION "cannot run")
    endif()
  endforeach()
endfunction()

heed_compiled_program(compiled_kernels gemm/int8_panels gemm/panels gemm/weight_panels kernels/additive kernels/coverage kernels/cross_entropy kernels/dot kernels/gated_linear
                      kernels/layer_norm kernels/optimizers kernels/per_dimension kernels/recurrent kernels/rows kernels/softmax
                      kernels/sparse kernels/top_k_words kernels/weighted_sum)
heed_compiled_program(compiled_operations ops/broadcast ops/elementwise ops/tiles)
set(wider avx512_bf16 avx512_amx)
heed_compiled_program(compiled_bfloat16 gemm/products_in_bfloat16 ops/tiles_in_bfloat16)
unset(wider)

# With a shared library the program is small.
get_target_property(objects heed_compiled HEED_OBJECTS)
set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
add_library(heed_compiled_shared SHARED "${PROJECT_SOURCE_DIR}/src/compiled/dispatch.cpp" ${objects})
add_dependencies(heed_compiled_shared heed_compiled)
target_link_libraries(heed_compiled_shared PUBLIC heed)
target_compile_definitions(heed_compiled_shared INTERFACE HEED_COMPILED PRIVATE HEED_COMPILED HEED_DEFINES_COMPILED)
target_compile_options(heed_compiled_shared PRIVATE -march=x86-64)
add_executable(compiled_shared compiled/step.cpp)
target_link_libraries(compiled_shared PRIVATE heed_compiled_shared heed_warnings_anywhere)
target_compile_options(compiled_shared PRIVATE -O2)
add_test(NAME "${HEED_TEST_PREFIX}compiled_shared"
         COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/compiled/compiled.sh" "$<TARGET_FILE:compiled_shared>"
                 "$<TARGET_OBJECTS:compiled_shared>" "$<TARGET_FILE:heed_compiled_shared>")

add_executable(compiled compiled/step.cpp)
target_link_libraries(compiled PRIVATE heed::compiled heed_warnings_anywhere)
target_compile_options(compiled PRIVATE -O2)
add_test(NAME "${HEED_TEST_PREFIX}compiled" COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/compiled/compiled.sh" "$<TARGET_FILE:compiled>"
                                                    "$<TARGET_OBJECTS:compiled>" "$<TARGET_FILE:heed_compiled>")
