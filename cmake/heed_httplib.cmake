# SPDX-License-Identifier: BSD-3-Clause
#
# cpp-httplib as heed_httplib, for `translate serve`: the compiled library of Debian 12 (0.11), whose classes depend on
# the three macros below. The target is defined only if the library is found. The probe tests the functions that
# tools/translate/serve/http.cpp uses; later versions have a different `process_request`.

find_path(HEED_HTTPLIB_INCLUDE_DIR httplib.h)
find_library(HEED_HTTPLIB_LIBRARY cpp-httplib)
mark_as_advanced(HEED_HTTPLIB_INCLUDE_DIR HEED_HTTPLIB_LIBRARY)
if(HEED_HTTPLIB_INCLUDE_DIR AND HEED_HTTPLIB_LIBRARY)
  set(heed_httplib_macros CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT CPPHTTPLIB_BROTLI_SUPPORT)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_QUIET ON)
  list(TRANSFORM heed_httplib_macros PREPEND -D OUTPUT_VARIABLE CMAKE_REQUIRED_DEFINITIONS)
  set(CMAKE_REQUIRED_INCLUDES "${HEED_HTTPLIB_INCLUDE_DIR}")
  set(CMAKE_REQUIRED_LIBRARIES "${HEED_HTTPLIB_LIBRARY}" Threads::Threads)
  check_cxx_source_compiles("#include <httplib.h>
struct server : httplib::Server {
    bool run(httplib::Stream& stream, bool& closed) { return process_request(stream, false, closed, nullptr); }
    int socket() const { return svr_sock_; }
};
int main() { return server().socket() == INVALID_SOCKET ? 0 : 1; }" HEED_HTTPLIB_FITS)
  unset(CMAKE_REQUIRED_QUIET)
  unset(CMAKE_REQUIRED_DEFINITIONS)
  unset(CMAKE_REQUIRED_INCLUDES)
  unset(CMAKE_REQUIRED_LIBRARIES)
  if(HEED_HTTPLIB_FITS)
    add_library(heed_httplib INTERFACE IMPORTED)
    target_include_directories(heed_httplib SYSTEM INTERFACE "${HEED_HTTPLIB_INCLUDE_DIR}")
    target_compile_definitions(heed_httplib INTERFACE ${heed_httplib_macros})
    target_link_libraries(heed_httplib INTERFACE "${HEED_HTTPLIB_LIBRARY}" Threads::Threads)
  endif()
endif()
if(NOT TARGET heed_httplib)
  message(STATUS "heed: cpp-httplib 0.11 not found (Debian: libcpp-httplib-dev), `translate serve` is built without HTTP")
endif()
