# Installs the headers and a package for find_package(sheafnn [COMPONENTS io cuda]).
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sheafnn)
install(DIRECTORY include/sheafnn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/sheafnn)

# One export per target: without zlib the consumer of the core must not stumble over sheafnn::io.
install(TARGETS sheafnn EXPORT sheafnnTargets)
install(EXPORT sheafnnTargets NAMESPACE sheafnn:: DESTINATION ${package_dir})
if(TARGET sheafnn_io)
  install(TARGETS sheafnn_io EXPORT sheafnnIoTargets)
  install(EXPORT sheafnnIoTargets NAMESPACE sheafnn:: DESTINATION ${package_dir})
endif()
if(TARGET sheafnn_cuda)
  install(TARGETS sheafnn_cuda EXPORT sheafnnCudaTargets)
  install(EXPORT sheafnnCudaTargets NAMESPACE sheafnn:: DESTINATION ${package_dir})
endif()

configure_package_config_file(cmake/sheafnnConfig.cmake.in ${PROJECT_BINARY_DIR}/sheafnnConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sheafnnConfigVersion.cmake COMPATIBILITY SameMinorVersion
                                 ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/sheafnnConfig.cmake ${PROJECT_BINARY_DIR}/sheafnnConfigVersion.cmake
        DESTINATION ${package_dir})
