# The checkout that this port is a part of.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../../.." ABSOLUTE)
set(VCPKG_BUILD_TYPE release)  # headers only
set(VCPKG_POLICY_SKIP_PKGCONFIG_CHECK enabled)  # share/pkgconfig holds for headers; -pthread is all that they link
set(options "")
if(NOT "io" IN_LIST FEATURES)
  list(APPEND options -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON)
endif()
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DSHEAFNN_BUILD_TESTS=OFF -DSHEAFNN_BUILD_EXAMPLES=OFF -DSHEAFNN_BUILD_BENCHMARKS=OFF -DSHEAFNN_INSTALL=ON
          ${options})
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/sheafnn)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/lib" "${CURRENT_PACKAGES_DIR}/debug")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
