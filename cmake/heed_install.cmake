# SPDX-License-Identifier: BSD-3-Clause
#
# cmake --install: headers, the CMake package `heed` (targets heed::heed, heed::linalg, heed::io and heed::kit), and heed.pc.

include(CMakePackageConfigHelpers)

# Architecture-independent, so the package is in share/, not lib/. The compiled heed::translator adds a file in lib/, see
# src/CMakeLists.txt.
set(heed_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/heed")

install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")

install(TARGETS heed EXPORT heed_targets)
install(EXPORT heed_targets NAMESPACE heed:: FILE heedTargets.cmake DESTINATION "${heed_package_dir}")

# heed::linalg and heed::io are loaded only if their dependencies are installed, so each has a separate export file.
install(TARGETS heed_linalg EXPORT heed_linalg_targets)
install(EXPORT heed_linalg_targets NAMESPACE heed:: FILE heedLinalgTargets.cmake DESTINATION "${heed_package_dir}")
install(TARGETS heed_io heed_kit EXPORT heed_io_targets)
install(EXPORT heed_io_targets NAMESPACE heed:: FILE heedIoTargets.cmake DESTINATION "${heed_package_dir}")

set(heed_translator_reads_raw_text FALSE)
if(TARGET heed_raw_text)
  set(heed_translator_reads_raw_text TRUE)
endif()
configure_package_config_file(cmake/heedConfig.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/heedConfig.cmake"
                              INSTALL_DESTINATION "${heed_package_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/heedConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/heedConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/heedConfigVersion.cmake"
              cmake/heed_dependencies.cmake DESTINATION "${heed_package_dir}")

if(TARGET heed_raw_text)
  install(TARGETS heed_raw_text EXPORT heed_raw_text_targets)
  install(EXPORT heed_raw_text_targets NAMESPACE heed:: FILE heedRawTextTargets.cmake DESTINATION "${heed_package_dir}")
endif()

if(TARGET heed_distributed)
  install(TARGETS heed_distributed EXPORT heed_distributed_targets)
  install(EXPORT heed_distributed_targets NAMESPACE heed:: FILE heedDistributedTargets.cmake DESTINATION "${heed_package_dir}")
endif()

# pkg-config gets library names, not paths: libopenblas.so becomes -lopenblas. A BLAS elsewhere keeps its path.
set(heed_pc_libs "")
foreach(library IN LISTS BLAS_LIBRARIES HEED_CBLAS_LIBRARY)
  get_filename_component(name "${library}" NAME)
  get_filename_component(directory "${library}" DIRECTORY)
  if(name MATCHES "^lib(.+)\\.(so|a|dylib)$" AND directory IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    string(APPEND heed_pc_libs " -l${CMAKE_MATCH_1}")
  elseif(library)
    string(APPEND heed_pc_libs " ${library}")
  endif()
endforeach()
# Omits include directories that the compiler searches by default.
set(heed_pc_cflags "")
if(HEED_BLAS STREQUAL "cblas")
  set(heed_pc_cflags " -DHEED_BLAS_CBLAS")
  set(directories "${HEED_CBLAS_INCLUDE_DIR}")
elseif(HEED_BLAS STREQUAL "none")
  set(heed_pc_cflags " -DHEED_BLAS_NONE")
  set(directories "")
else()
  get_target_property(directories xtensor-blas INTERFACE_INCLUDE_DIRECTORIES)
  string(GENEX_STRIP "${directories}" directories)
endif()
list(REMOVE_ITEM directories ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
foreach(directory IN LISTS directories)
  string(APPEND heed_pc_cflags " -isystem ${directory}")
endforeach()
# The prefix is relative to the file, so that `cmake --install --prefix` and a moved tree work.
set(heed_pc_dir "${CMAKE_INSTALL_DATADIR}/pkgconfig")
file(RELATIVE_PATH heed_pc_prefix "${CMAKE_INSTALL_PREFIX}/${heed_pc_dir}" "${CMAKE_INSTALL_PREFIX}")
configure_file(cmake/heed.pc.in "${CMAKE_CURRENT_BINARY_DIR}/heed.pc" @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/heed.pc" DESTINATION "${heed_pc_dir}")
