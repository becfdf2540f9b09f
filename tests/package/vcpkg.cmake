# SPDX-License-Identifier: BSD-3-Clause
#
# packaging/vcpkg, without vcpkg: its portfile runs with stand-ins for vcpkg's functions that call CMake in the same
# way, and a project uses the installed files. vcpkg.json agrees with the sources.
#
# FEATURES are the features of the port, DEFINES the definitions that its user then compiles with.

cmake_minimum_required(VERSION 3.22)

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what} failed (${result}):\n${output}")
  endif()
endfunction()

set(port "${HEED_SOURCE}/packaging/vcpkg/heed")
set(ENV{OPENBLAS_NUM_THREADS} 1)

# ---- the manifest ------------------------------------------------------------------------------------------------------

file(READ "${port}/vcpkg.json" manifest)
string(JSON dependencies GET "${manifest}" dependencies)
string(JSON features GET "${manifest}" features)
foreach(name IN ITEMS xtensor nlohmann-json vcpkg-cmake vcpkg-cmake-config)
  if(NOT dependencies MATCHES "\"${name}\"")
    message(FATAL_ERROR "packaging/vcpkg/heed/vcpkg.json does not depend on ${name}")
  endif()
endforeach()
string(JSON default GET "${manifest}" default-features 0)
string(JSON ignored GET "${features}" "${default}")
file(READ "${port}/portfile.cmake" text)
string(REGEX MATCHALL "\"[a-z]+\" IN_LIST FEATURES" asked "${text}")
foreach(feature IN LISTS asked)
  string(REGEX REPLACE "^\"([a-z]+)\".*" "\\1" feature "${feature}")
  string(JSON ignored GET "${features}" "${feature}")
endforeach()

# ---- the portfile ------------------------------------------------------------------------------------------------------

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS;MAYBE_UNUSED_VARIABLES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "vcpkg_cmake_configure does not take ${arg_UNPARSED_ARGUMENTS}")
  endif()
  run("the port's configuration" "${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${SCRATCH}/build" -G "${GENERATOR}"
      "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${PREFIX_PATH}" -DCMAKE_BUILD_TYPE=Release
      "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" ${arg_OPTIONS})
endfunction()
function(vcpkg_cmake_install)
  run("the port's installation" "${CMAKE_COMMAND}" --build "${SCRATCH}/build" --target install)
endfunction()
function(vcpkg_cmake_config_fixup)  # share/<package> is one level closer to the prefix
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "PACKAGE_NAME;CONFIG_PATH" "")
  file(COPY "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
  file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}")
  file(GLOB configs "${CURRENT_PACKAGES_DIR}/share/${PORT}/*.cmake")
  foreach(config IN LISTS configs)
    file(READ "${config}" text)
    string(REPLACE "\${CMAKE_CURRENT_LIST_DIR}/../../../" "\${CMAKE_CURRENT_LIST_DIR}/../../" text "${text}")
    set(upwards "get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\n")
    string(FIND "${text}" "${upwards}" at)
    if(at GREATER -1)  # one level up less
      string(LENGTH "${upwards}" length)
      math(EXPR after "${at} + ${length}")
      string(SUBSTRING "${text}" 0 ${at} before)
      string(SUBSTRING "${text}" ${after} -1 after)
      set(text "${before}${after}")
    endif()
    file(WRITE "${config}" "${text}")
  endforeach()
endfunction()
function(vcpkg_fixup_pkgconfig)
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  configure_file("${arg_FILE_LIST}" "${CURRENT_PACKAGES_DIR}/share/${PORT}/copyright" COPYONLY)
endfunction()

file(REMOVE_RECURSE "${SCRATCH}")
file(MAKE_DIRECTORY "${SCRATCH}")
set(PORT heed)
set(CURRENT_PORT_DIR "${port}")
set(CURRENT_PACKAGES_DIR "${SCRATCH}/package")
include("${port}/portfile.cmake")

# ---- the installed files: headers, share/heed and heed.pc, without build paths ---------------------------------------------

file(GLOB_RECURSE ours RELATIVE "${HEED_SOURCE}/include" "${HEED_SOURCE}/include/*.hpp")
file(GLOB_RECURSE theirs RELATIVE "${CURRENT_PACKAGES_DIR}/include" "${CURRENT_PACKAGES_DIR}/include/*")
if(NOT ours STREQUAL theirs)
  message(FATAL_ERROR "the port must install exactly the headers of include/")
endif()
file(GLOB_RECURSE files RELATIVE "${CURRENT_PACKAGES_DIR}" "${CURRENT_PACKAGES_DIR}/*")
list(FILTER files EXCLUDE REGEX "^include/")
list(REMOVE_ITEM files lib/pkgconfig/heed.pc share/heed/copyright share/heed/usage)
list(FILTER files EXCLUDE REGEX "^share/heed/heed[A-Za-z_]*\\.cmake$")
if(files)
  message(FATAL_ERROR "the port leaves ${files}")
endif()
foreach(file IN ITEMS lib/pkgconfig/heed.pc share/heed/copyright share/heed/usage share/heed/heedConfig.cmake
        share/heed/heedConfigVersion.cmake share/heed/heedTargets.cmake)
  if(NOT EXISTS "${CURRENT_PACKAGES_DIR}/${file}")
    message(FATAL_ERROR "the port lacks ${file}")
  endif()
  file(READ "${CURRENT_PACKAGES_DIR}/${file}" text)
  foreach(place IN ITEMS "${HEED_SOURCE}" "${SCRATCH}")
    string(FIND "${text}" "${place}/" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${file} names ${place}")
    endif()
  endforeach()
endforeach()
file(GLOB_RECURSE folders LIST_DIRECTORIES ON "${CURRENT_PACKAGES_DIR}/*")
foreach(folder IN LISTS folders)
  file(GLOB inside "${folder}/*")
  if(IS_DIRECTORY "${folder}" AND NOT inside)
    message(FATAL_ERROR "the port leaves ${folder} empty")
  endif()
endforeach()

# ---- a project uses the port -------------------------------------------------------------------------------------------

run("a project's configuration" "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/installed" -B "${SCRATCH}/use" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${CURRENT_PACKAGES_DIR};${PREFIX_PATH}"
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON "-DHEED_VERSION=${HEED_VERSION}")
run("a project's build" "${CMAKE_COMMAND}" --build "${SCRATCH}/use")
run("a project's program" "${SCRATCH}/use/installed")
file(READ "${SCRATCH}/use/compile_commands.json" commands)
foreach(flag IN ITEMS "${CURRENT_PACKAGES_DIR}/include" "${DEFINES}")
  string(FIND "${commands}" "${flag} " at)
  if(at EQUAL -1)
    message(FATAL_ERROR "the project is not compiled with ${flag}:\n${commands}")
  endif()
endforeach()
