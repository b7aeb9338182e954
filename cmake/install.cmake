# SPDX-License-Identifier: Apache-2.0
# cmake --install: library, software devices, headers, tool, strait.pc and find_package(strait). The tree may be moved
# afterwards: everything finds everything else by relative paths.
include(CMakePackageConfigHelpers)

add_dependencies(strait strait_soft)  # opened at run time: whoever builds the library wants its devices too
if(TARGET strait_verbs)
  add_dependencies(strait strait_verbs)
endif()
set_target_properties(strait_tool PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin OUTPUT_NAME strait)
install(TARGETS strait strait_tool)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/strait DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH STRAIT_PC_TO_PREFIX /${folder} /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/strait.pc.in strait.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/strait.pc DESTINATION ${folder})

set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/strait)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/strait-config.cmake.in strait-config.cmake
  INSTALL_DESTINATION ${folder} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(strait-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/strait-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/strait-config-version.cmake
  DESTINATION ${folder})
