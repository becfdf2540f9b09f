# SPDX-License-Identifier: BSD-3-Clause
#
# heed_install_tool(<program>): `cmake --install` also installs this program of tools/, if it has been built, with its
# manual pages and completions for bash, zsh and fish, as the component `tools`. The program generates pages and
# completions from its options after it is built.

string(TIMESTAMP heed_tools_date "%Y-%m-%d" UTC)  # SOURCE_DATE_EPOCH, where a package builder sets it

# Reports the processor that a program requires, on a processor without its instructions. Compiled for every processor,
# regardless of the flags.
add_library(heed_processor OBJECT "${PROJECT_SOURCE_DIR}/tools/support/processor.cpp")
target_link_libraries(heed_processor PRIVATE heed_warnings_anywhere)
target_compile_features(heed_processor PRIVATE cxx_std_20)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  target_compile_options(heed_processor PRIVATE -march=x86-64)
endif()

# The recipes of `translate train --recipe NAME`: the program finds them relative to its folder, installed or not.
function(heed_install_recipes program folder)
  get_filename_component(name "${folder}" NAME)
  file(RELATIVE_PATH from_program "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_DATADIR}/heed/${name}")
  target_compile_definitions(${program} PRIVATE "HEED_RECIPES=\"${from_program}\"")
  file(CREATE_LINK "${folder}" "${CMAKE_CURRENT_BINARY_DIR}/${name}" SYMBOLIC)
  if(HEED_INSTALL)
    install(DIRECTORY "${folder}" DESTINATION "${CMAKE_INSTALL_DATADIR}/heed" COMPONENT tools)
  endif()
endfunction()

function(heed_install_tool program)
  target_sources(${program} PRIVATE $<TARGET_OBJECTS:heed_processor>)
  if(NOT HEED_INSTALL)
    return()
  endif()
  set(made "${CMAKE_CURRENT_BINARY_DIR}/made/${program}")
  if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
    add_custom_command(
      TARGET ${program}
      POST_BUILD
      COMMAND "${CMAKE_COMMAND}" -E rm -rf "${made}"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${made}/man" "${made}/bash" "${made}/zsh" "${made}/fish"
      COMMAND ${program} --generate man "${made}/man" ${heed_tools_date}
      COMMAND ${program} --generate completion "${made}" ${heed_tools_date}
      VERBATIM)
  endif()
  # Finds a BLAS outside of the system's folders where it was linked.
  set_target_properties(${program} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  # OPTIONAL: the headers can be installed without building a program.
  install(TARGETS ${program} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT tools OPTIONAL)
  foreach(pair IN ITEMS "man:${CMAKE_INSTALL_MANDIR}/man1" "bash:${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
                        "zsh:${CMAKE_INSTALL_DATADIR}/zsh/site-functions"
                        "fish:${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
    string(REGEX MATCH "^([a-z]+):(.*)$" ignored "${pair}")
    install(DIRECTORY "${made}/${CMAKE_MATCH_1}/" DESTINATION "${CMAKE_MATCH_2}" COMPONENT tools OPTIONAL)
  endforeach()
endfunction()
