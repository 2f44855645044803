"""Conan 2 recipe of the checkout that it is a part of."""

import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load


class Sheafnn(ConanFile):
    name = "sheafnn"
    description = "Sheaf neural networks, deterministic and Bayesian, and distributions of rotations; header-only"
    license = "MIT"
    topics = ("graph", "neural-network", "bayesian", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"io": [True, False], "system": [True, False]}
    default_options = {"io": True, "system": False}  # system: the dependencies are those of the machine
    no_copy_source = True

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "..", "..", "include", "sheafnn", "version.hpp"))
        self.version = re.search(r'VERSION_STRING "([^"]+)"', header).group(1)

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        if self.options.system:
            return
        self.requires("eigen/3.4.0", transitive_headers=True)
        self.requires("boost/1.84.0", transitive_headers=True)
        if self.options.io:
            self.requires("zlib/[>=1.2.11 <2]", transitive_headers=True)
            self.requires("nlohmann_json/3.11.3", transitive_headers=True)

    def package_id(self):
        self.info.clear()

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "EXAMPLES", "BENCHMARKS"):
            toolchain.cache_variables[f"SHEAFNN_BUILD_{part}"] = "OFF"
        toolchain.cache_variables["SHEAFNN_INSTALL"] = "ON"
        if not self.options.io:
            toolchain.cache_variables["CMAKE_DISABLE_FIND_PACKAGE_ZLIB"] = "ON"
        toolchain.generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        # The package's own file for find_package, which looks for Eigen and the rest itself.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append(os.path.join("lib", "cmake", "sheafnn"))
