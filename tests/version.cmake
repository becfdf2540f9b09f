# SPDX-License-Identifier: BSD-3-Clause
#
# version.hpp is the source; its four macros, the project's version, CHANGELOG.md, CITATION.cff and the packages must
# agree. (Conan's recipe reads version.hpp.)

cmake_minimum_required(VERSION 3.22)

set(problems "")

file(READ "${SOURCE_DIR}/include/heed/version.hpp" header)
string(REGEX MATCH "#define HEED_VERSION_STRING \"([0-9.]+)\"" _ "${header}")
set(version "${CMAKE_MATCH_1}")
foreach(part IN ITEMS MAJOR MINOR PATCH)
  string(REGEX MATCH "#define HEED_VERSION_${part} ([0-9]+)" _ "${header}")
  list(APPEND parts "${CMAKE_MATCH_1}")
endforeach()
list(JOIN parts "." joined)
if(NOT version OR NOT joined STREQUAL version)
  list(APPEND problems "version.hpp: HEED_VERSION_STRING is '${version}', but the numbers give '${joined}'")
endif()

if(NOT CMAKE_VERSION_READ STREQUAL version)
  list(APPEND problems "CMake read '${CMAKE_VERSION_READ}' from version.hpp, which contains '${version}'")
endif()

# The first released heading; one called Unreleased may precede it.
if(EXISTS "${SOURCE_DIR}/CHANGELOG.md")
  file(READ "${SOURCE_DIR}/CHANGELOG.md" changelog)
  string(REGEX MATCH "\n## \\[?v?([0-9]+\\.[0-9]+\\.[0-9]+)" _ "\n${changelog}")
  if(NOT CMAKE_MATCH_1 STREQUAL version)
    list(APPEND problems "CHANGELOG.md: the newest heading is '${CMAKE_MATCH_1}', should be '## [${version}] - <date>'")
  endif()
else()
  list(APPEND problems "CHANGELOG.md is missing")
endif()

file(READ "${SOURCE_DIR}/CITATION.cff" citation)
string(REGEX MATCH "\nversion: *\"?([0-9.]+)" _ "${citation}")
if(NOT CMAKE_MATCH_1 STREQUAL version)
  list(APPEND problems "CITATION.cff: version is '${CMAKE_MATCH_1}', should be '${version}'")
endif()

file(READ "${SOURCE_DIR}/packaging/debian/changelog" debian LIMIT 100)
if(NOT debian MATCHES "^heed \\(([0-9.]+)-[0-9]+\\) " OR NOT CMAKE_MATCH_1 STREQUAL version)
  list(APPEND problems "packaging/debian/changelog: the newest entry is '${CMAKE_MATCH_1}', should be 'heed (${version}-1)'")
endif()

file(READ "${SOURCE_DIR}/packaging/vcpkg/heed/vcpkg.json" vcpkg)
string(JSON vcpkg_version GET "${vcpkg}" version-semver)
if(NOT vcpkg_version STREQUAL version)
  list(APPEND problems "packaging/vcpkg/heed/vcpkg.json: version-semver is '${vcpkg_version}', should be '${version}'")
endif()

if(problems)
  list(JOIN problems "\n" problems)
  message(FATAL_ERROR "${problems}")
endif()
message(STATUS "${version} everywhere")
