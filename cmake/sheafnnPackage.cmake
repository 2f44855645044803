# cpack: a Debian package of the headers and a .tar.gz.
set(CPACK_PACKAGE_NAME sheafnn)
set(CPACK_PACKAGE_CONTACT "The sheafnn authors")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME sheafnn-${PROJECT_VERSION})
set(CPACK_GENERATOR "TGZ;DEB")
set(CPACK_DEBIAN_PACKAGE_NAME libsheafnn-dev)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
if(NOT TARGET sheafnn_models)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE all)
endif()
set(CPACK_DEBIAN_PACKAGE_DEPENDS
    "libeigen3-dev (>= 3.4), libboost-math-dev, libboost-dev, zlib1g-dev, nlohmann-json3-dev")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# Eigen, Boost and the rest are found anew where the package is installed: /usr, whatever the build's own prefix.
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
include(CPack)
