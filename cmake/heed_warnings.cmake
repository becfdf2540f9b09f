# SPDX-License-Identifier: BSD-3-Clause
#
# heed_warnings: the compiler flags of heed's tests, examples and benchmarks. Only these link it (PRIVATE), and it is
# never installed: a project that uses heed chooses its flags. heed_warnings_anywhere: these flags without -march, for
# targets that choose the processor themselves.

include(CheckCXXCompilerFlag)
include(CheckCXXSourceCompiles)
include(CheckCXXSourceRuns)

add_library(heed_warnings_anywhere INTERFACE)
add_library(heed_warnings INTERFACE)
target_link_libraries(heed_warnings INTERFACE heed_warnings_anywhere)

target_compile_options(heed_warnings_anywhere INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports uninitialized reads in its avx512fintrin.h and in xtl, which SYSTEM does not silence after inlining.
  target_compile_options(heed_warnings_anywhere INTERFACE -Wno-maybe-uninitialized)
  # g++ collects garbage from 128 MB on, which takes a fifth of its time for files that need 1 GB.
  target_compile_options(heed_warnings_anywhere INTERFACE --param=ggc-min-heapsize=1000000)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # g++ 12 warns about any `"text" + std::string` at -O2 (bug 105651).
    target_compile_options(heed_warnings_anywhere INTERFACE -Wno-restrict)
  endif()
endif()
if(HEED_WARNINGS_AS_ERRORS)
  target_compile_options(heed_warnings_anywhere INTERFACE -Werror)
endif()

if(HEED_NATIVE)
  check_cxx_compiler_flag(-march=native HEED_HAS_MARCH_NATIVE)
  if(HEED_HAS_MARCH_NATIVE)
    set(heed_native_flags -march=native)
    # Compilers prefer 256 bits on most CPUs with AVX-512, because of its first generation.
    set(CMAKE_REQUIRED_FLAGS -march=native)
    check_cxx_source_compiles("
      #ifndef __AVX512F__
      #error
      #endif
      int main() {}" HEED_HAS_AVX512)
    unset(CMAKE_REQUIRED_FLAGS)
    if(HEED_HAS_AVX512)
      list(APPEND heed_native_flags -mprefer-vector-width=512)
    endif()
    target_compile_options(heed_warnings INTERFACE ${heed_native_flags})
  endif()
endif()

# lld, if installed, links in a fifth of the time.
find_program(HEED_LLD NAMES ld.lld)
mark_as_advanced(HEED_LLD)
if(HEED_LLD AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND NOT APPLE)
  target_link_options(heed_warnings_anywhere INTERFACE -fuse-ld=lld)
endif()

if(HEED_SANITIZE)
  target_compile_options(heed_warnings_anywhere INTERFACE "-fsanitize=${HEED_SANITIZE}"
                                                             -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(HEED_SANITIZE_EXCEPT)
    target_compile_options(heed_warnings_anywhere INTERFACE "-fno-sanitize=${HEED_SANITIZE_EXCEPT}")
  endif()
  # Checks addresses with calls, and does not compile a check that is off by default: 10% less compile time, 20% less
  # memory.
  if(HEED_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(heed_warnings_anywhere INTERFACE "SHELL:-mllvm -asan-instrumentation-with-call-threshold=0"
                                                               -fsanitize-address-use-after-return=never)
  endif()
  target_compile_definitions(heed_warnings_anywhere INTERFACE _GLIBCXX_ASSERTIONS)
  target_link_options(heed_warnings_anywhere INTERFACE "-fsanitize=${HEED_SANITIZE}")
endif()

if(HEED_XTENSOR_ASSERT)
  target_compile_definitions(heed_warnings_anywhere INTERFACE XTENSOR_ENABLE_ASSERT XTENSOR_ENABLE_CHECK_DIMENSION)
endif()
