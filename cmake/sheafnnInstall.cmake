# Installs the headers and a package for find_package(sheafnn [COMPONENTS io models cuda mpi]).
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sheafnn)
set(without_cuda "")
if(NOT SHEAFNN_CUDA)
  set(without_cuda REGEX "/(cuda|device_error|device_executor|device_queue)\\.hpp$" EXCLUDE)
endif()
set(without_mpi "")
if(NOT SHEAFNN_MPI)
  set(without_mpi REGEX "/distributed(\\.hpp|$)" EXCLUDE)
endif()
install(DIRECTORY include/sheafnn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp" ${without_cuda}
        ${without_mpi})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/sheafnn)

# One export per target: without zlib the consumer of the core must not stumble over sheafnn::io.
install(TARGETS sheafnn EXPORT sheafnnTargets)
install(EXPORT sheafnnTargets NAMESPACE sheafnn:: DESTINATION ${package_dir})
if(TARGET sheafnn_io)
  install(TARGETS sheafnn_io EXPORT sheafnnIoTargets)
  install(EXPORT sheafnnIoTargets NAMESPACE sheafnn:: DESTINATION ${package_dir})
endif()
if(TARGET sheafnn_models)
  install(TARGETS sheafnn_models EXPORT sheafnnModelsTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT sheafnnModelsTargets NAMESPACE sheafnn:: DESTINATION ${package_dir})
endif()
if(TARGET sheafnn_mpi)
  install(TARGETS sheafnn_mpi EXPORT sheafnnMpiTargets)
  install(EXPORT sheafnnMpiTargets NAMESPACE sheafnn:: DESTINATION ${package_dir})
  install(FILES cmake/FindMETIS.cmake DESTINATION ${package_dir})
endif()
if(TARGET sheafnn_cuda)
  install(TARGETS sheafnn_cuda EXPORT sheafnnCudaTargets)
  install(EXPORT sheafnnCudaTargets NAMESPACE sheafnn:: DESTINATION ${package_dir})
endif()

configure_package_config_file(cmake/sheafnnConfig.cmake.in ${PROJECT_BINARY_DIR}/sheafnnConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
set(any_architecture ARCH_INDEPENDENT)
if(TARGET sheafnn_models)
  set(any_architecture "")
endif()
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sheafnnConfigVersion.cmake COMPATIBILITY SameMinorVersion
                                 ${any_architecture})
install(FILES ${PROJECT_BINARY_DIR}/sheafnnConfig.cmake ${PROJECT_BINARY_DIR}/sheafnnConfigVersion.cmake
        DESTINATION ${package_dir})

# pkg-config: folders relative to the folder of the .pc file, wherever the options put them.
set(pc_dir ${CMAKE_INSTALL_FULL_DATADIR}/pkgconfig)
file(RELATIVE_PATH pc_prefix "${pc_dir}" "${CMAKE_INSTALL_PREFIX}")
file(RELATIVE_PATH pc_includedir "${pc_dir}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
configure_file(cmake/sheafnn.pc.in ${PROJECT_BINARY_DIR}/sheafnn.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sheafnn.pc DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig)
if(TARGET sheafnn_io)
  configure_file(cmake/sheafnn-io.pc.in ${PROJECT_BINARY_DIR}/sheafnn-io.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/sheafnn-io.pc DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig)
endif()

if(PROJECT_IS_TOP_LEVEL)
  configure_file(cmake/uninstall.cmake.in ${PROJECT_BINARY_DIR}/uninstall.cmake @ONLY)
  add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -P ${PROJECT_BINARY_DIR}/uninstall.cmake)
  include(cmake/sheafnnPackage.cmake)
endif()
