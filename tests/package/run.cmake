# SPDX-License-Identifier: BSD-3-Clause
#
# HOW is add_subdirectory, find_package or fetch_content; BESIDE is a header that one translation unit includes before
# heed and the other after it. With <cblas.h>, heed is used with HEED_BLAS=cblas. MPIEXEC: starts a program on several
# ranks if heed was configured with MPI.

cmake_minimum_required(VERSION 3.22)

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what} failed (${result}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# The flags seen below must be heed's, not the environment's.
foreach(variable IN ITEMS CXXFLAGS CPPFLAGS LDFLAGS)
  unset(ENV{${variable}})
endforeach()
set(ENV{OPENBLAS_NUM_THREADS} 1)

file(REMOVE_RECURSE "${SCRATCH}")
set(prefix "${SCRATCH}/moved")
if(HOW STREQUAL "find_package")
  if(NOT EXISTS "${HEED_BINARY}/heedConfig.cmake")
    message(FATAL_ERROR "heed was configured with HEED_INSTALL=OFF")
  endif()
  run("install" "${CMAKE_COMMAND}" --install "${HEED_BINARY}" --prefix "${SCRATCH}/installed")
  file(RENAME "${SCRATCH}/installed" "${prefix}")  # an installed tree can be moved
  file(GLOB_RECURSE texts "${prefix}/*.cmake" "${prefix}/*.pc")
  if(NOT texts)
    message(FATAL_ERROR "nothing was installed")
  endif()
  foreach(text IN LISTS texts)
    file(READ "${text}" content)
    foreach(place IN ITEMS "${HEED_SOURCE}/" "${HEED_BINARY}/" "${SCRATCH}/")
      string(FIND "${content}" "${place}" at)
      if(NOT at EQUAL -1)
        message(FATAL_ERROR "${text} names ${place}")
      endif()
    endforeach()
  endforeach()
  list(PREPEND PREFIX_PATH "${prefix}")
endif()

set(definitions "ALL_OF_HEED|BEFORE|AFTER|HEED_DISTRIBUTED|HEED_COMPILED")
set(distributed "")
if(HOW STREQUAL "find_package" AND MPIEXEC)
  set(distributed distributed)
  string(APPEND definitions "|MPICH_SKIP_MPICXX|OMPI_SKIP_MPICXX|_MPICC_H")  # CMake excludes MPI's C++ bindings
endif()
if(BESIDE STREQUAL "<cblas.h>")
  set(HEED_BLAS -DHEED_BLAS=cblas)
  string(APPEND definitions "|HEED_BLAS_CBLAS")
endif()
run("configure"
    "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/consumer" -B "${SCRATCH}/build" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON "-DCMAKE_PREFIX_PATH=${PREFIX_PATH}"
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF "-DHOW=${HOW}" "-DBESIDE=${BESIDE}" ${HEED_BLAS}
    "-DHEED_DISTRIBUTED=${distributed}"
    "-DHEED_SOURCE=${HEED_SOURCE}" "-DHEED_VERSION=${HEED_VERSION}")
run("build" "${CMAKE_COMMAND}" --build "${SCRATCH}/build")
run("run" "${SCRATCH}/build/consumer")
if(NOT output MATCHES "heed ${HEED_VERSION}")
  message(FATAL_ERROR "the consumer should greet with heed ${HEED_VERSION}, but printed:\n${output}")
endif()

if(distributed)
  run("run on two ranks" bash "${CMAKE_CURRENT_LIST_DIR}/../mpi/run.sh" "${MPIEXEC}" 2 "${SCRATCH}/build/distributed")
  if(NOT output MATCHES "2 ranks: 3\n")
    message(FATAL_ERROR "two ranks should add up to 3, but printed:\n${output}")
  endif()
endif()

# The consumer sets no flags: any flag other than the language and the include directories comes from heed.
file(READ "${SCRATCH}/build/compile_commands.json" commands)
string(JSON count LENGTH "${commands}")
if(count LESS 2)
  message(FATAL_ERROR "compile_commands.json has ${count} entries, should have two")
endif()
math(EXPR last "${count} - 1")
foreach(i RANGE ${last})
  string(JSON command GET "${commands}" ${i} command)
  string(REGEX MATCHALL " -[mWfOgDU][^ ]*" flags "${command}")
  list(FILTER flags EXCLUDE REGEX "^ -D(${definitions})(=|$)")
  if(flags)
    message(FATAL_ERROR "heed leaks${flags} into its users' compile commands:\n${command}")
  endif()
  if(HEED_BLAS AND NOT command MATCHES " -DHEED_BLAS_CBLAS ")
    message(FATAL_ERROR "HEED_BLAS=cblas does not reach the compiler:\n${command}")
  endif()
  if(NOT command MATCHES " -std=(c|gnu)\\+\\+2")
    message(FATAL_ERROR "heed::heed does not require C++20:\n${command}")
  endif()
endforeach()

if(EXISTS "${SCRATCH}/build/compiled")
  run("the program with heed::compiled" "${SCRATCH}/build/compiled")
  if(NOT output MATCHES "^(sse2|avx2|avx512|avx512_vnni|avx512_bf16|avx512_amx) ")
    message(FATAL_ERROR "heed::compiled should print its target, but printed:\n${output}")
  endif()
endif()

# A model of `translate` in a user's program, built with CMake's package and with pkg-config's.
function(translates program)
  run("${program}" "${program}" "${SCRATCH}/model.safetensors")
  if(NOT output MATCHES "^[^\n]*: [0-9]+ x 3\n[^\n]*: [0-9]+ x 2\n$")
    message(FATAL_ERROR "${program} should translate two lines of two words and one, but printed:\n${output}")
  endif()
endfunction()
set(has_translator OFF)
if(HOW STREQUAL "find_package" AND TRANSLATE AND EXISTS "${SCRATCH}/build/trained")
  set(has_translator ON)
  file(WRITE "${SCRATCH}/text.a" "one\ntwo one\nthree\none two\n")
  file(WRITE "${SCRATCH}/text.b" "eins\neins zwei\ndrei\nzwei eins\n")
  run("train" "${TRANSLATE}" train --source "${SCRATCH}/text.a" --target "${SCRATCH}/text.b" --valid-source "${SCRATCH}/text.a"
      --valid-target "${SCRATCH}/text.b" --model "${SCRATCH}/model.safetensors" --embedding 8 --hidden 8 --alignment 8
      --epochs 1 --threads 1)
  translates("${SCRATCH}/build/trained")
endif()

if(HOW STREQUAL "find_package" AND PKG_CONFIG)
  set(ENV{PKG_CONFIG_PATH} "${prefix}/share/pkgconfig:${prefix}/lib/pkgconfig:$ENV{PKG_CONFIG_PATH}")
  run("pkg-config --modversion" "${PKG_CONFIG}" --modversion heed)
  string(STRIP "${output}" version)
  if(NOT version STREQUAL HEED_VERSION)
    message(FATAL_ERROR "heed.pc has version ${version}, should be ${HEED_VERSION}")
  endif()
  run("pkg-config --cflags --libs" "${PKG_CONFIG}" --cflags --libs heed)
  separate_arguments(flags UNIX_COMMAND "${output}")
  if(NOT flags MATCHES "-std=c\\+\\+20")
    message(FATAL_ERROR "heed.pc does not require C++20: ${flags}")
  endif()
  run("build with pkg-config" "${COMPILER}" "${CMAKE_CURRENT_LIST_DIR}/consumer/pkg_config.cpp" ${flags}
      -o "${SCRATCH}/with_pkg_config")
  run("run of the pkg-config program" "${SCRATCH}/with_pkg_config")
  if(EXISTS "${SCRATCH}/build/compiled")
    run("pkg-config --cflags --libs" "${PKG_CONFIG}" --cflags --libs heed-compiled)
    separate_arguments(flags UNIX_COMMAND "${output}")
    run("build with pkg-config" "${COMPILER}" "${HEED_SOURCE}/tests/compiled/step.cpp" ${flags}
        -o "${SCRATCH}/compiled_with_pkg_config")
    run("run of the pkg-config program" "${SCRATCH}/compiled_with_pkg_config")
  endif()
  if(has_translator)
    run("pkg-config --cflags --libs" "${PKG_CONFIG}" --cflags --libs heed-translator)
    separate_arguments(flags UNIX_COMMAND "${output}")
    run("build with pkg-config" "${COMPILER}" "${CMAKE_CURRENT_LIST_DIR}/consumer/trained.cpp" ${flags}
        -o "${SCRATCH}/trained_with_pkg_config")
    translates("${SCRATCH}/trained_with_pkg_config")
  endif()
endif()
