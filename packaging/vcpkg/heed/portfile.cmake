# SPDX-License-Identifier: BSD-3-Clause
#
# An overlay port that builds the enclosing sources. In a registry, vcpkg_from_github with the tag of the release and
# hash replaces the next line; the rest is unchanged.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)

set(VCPKG_BUILD_TYPE release)  # headers only

if("openblas" IN_LIST FEATURES)
    set(blas cblas)
else()
    set(blas none)
endif()

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        -DHEED_BLAS=${blas}
        -DHEED_INSTALL=ON
        -DHEED_MPI=OFF
        -DCMAKE_DISABLE_FIND_PACKAGE_ICU=ON  # heed::raw_text also requires SentencePiece, which is not part of this port
    MAYBE_UNUSED_VARIABLES
        CMAKE_DISABLE_FIND_PACKAGE_ICU
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/heed)
# It names libraries, so vcpkg puts it in lib.
file(MAKE_DIRECTORY "${CURRENT_PACKAGES_DIR}/lib")
file(RENAME "${CURRENT_PACKAGES_DIR}/share/pkgconfig" "${CURRENT_PACKAGES_DIR}/lib/pkgconfig")
vcpkg_fixup_pkgconfig()

file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/doc" "${CURRENT_PACKAGES_DIR}/share/cmake")
