# SPDX-License-Identifier: BSD-2-Clause
# What is installed of the library: headers, archive or shared library, CMake package, usdt.pc, licences.
include(CMakePackageConfigHelpers)
set(USDT_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/usdt)
install(TARGETS usdt EXPORT usdtTargets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/sdk/include/ ${PROJECT_SOURCE_DIR}/bpf/include/
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT usdtTargets NAMESPACE usdt:: DESTINATION ${USDT_CMAKE_DIR})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/usdtConfig.cmake.in usdtConfig.cmake
  INSTALL_DESTINATION ${USDT_CMAKE_DIR} PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(usdtConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/usdtConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/usdtConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/UsdtBpf.cmake ${PROJECT_SOURCE_DIR}/cmake/EmbedObject.cmake
        DESTINATION ${USDT_CMAKE_DIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/LICENSES DESTINATION ${CMAKE_INSTALL_DOCDIR})

# usdt.pc finds its prefix from where it lies, so that the tree may be installed or moved anywhere.
set(USDT_PC_DIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(IS_ABSOLUTE ${USDT_PC_DIR})
  set(USDT_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
  set(USDT_PC_LIBDIR ${CMAKE_INSTALL_LIBDIR})
else()
  set(USDT_PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  file(RELATIVE_PATH up /${USDT_PC_DIR} /)
  string(REGEX REPLACE "/$" "" up ${up})
  set(USDT_PC_PREFIX "\${pcfiledir}/${up}")
endif()
# Users of an archive link what it needs; of a shared library, its linker does, and only who links statically asks.
set(USDT_PC_NEEDS "libbpf >= 1.1, libdw, liblzma, libzstd, zlib, fmt")
if(BUILD_SHARED_LIBS)
  set(USDT_PC_REQUIRES "Requires.private: ${USDT_PC_NEEDS}")
  set(USDT_PC_LIBS "-lusdt\nLibs.private: -liberty -lZydis -pthread")
else()
  set(USDT_PC_REQUIRES "Requires: ${USDT_PC_NEEDS}")
  set(USDT_PC_LIBS "-lusdt -liberty -lZydis -pthread")
endif()
set(pc_files usdt usdt-provider libusdt-provider)
if(USDT_BUILD_BINDINGS AND NOT USDT_STATIC)
  list(APPEND pc_files usdt-c)
endif()
foreach(pc IN LISTS pc_files)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${pc}.pc.in ${pc}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${pc}.pc DESTINATION ${USDT_PC_DIR})
endforeach()
