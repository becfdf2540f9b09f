# SPDX-License-Identifier: BSD-3-Clause
"""heed for Conan 2. From the root of the sources: conan create packaging/conan --build=missing -s compiler.cppstd=20"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain
from conan.tools.files import copy, load

required_conan_version = ">=2.0"


class HeedConan(ConanFile):
    name = "heed"
    description = "Attention mechanisms made of three policies, header-only C++20"
    license = "BSD-3-Clause"
    topics = ("attention", "neural-machine-translation", "automatic-differentiation", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "blas": ["openblas", "none"],  # none: heed's products, at the speed given in docs/results/speed.md
        "with_translator": [True, False],  # heed::translator, a static library that takes minutes to compile
    }
    default_options = {"blas": "openblas", "with_translator": False}
    no_copy_source = True

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "..", "..", "include", "heed", "version.hpp"))
        self.version = re.search(r'define HEED_VERSION_STRING "([0-9.]+)"', header).group(1)

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def configure(self):
        if self.options.with_translator:
            self.package_type = "static-library"

    def requirements(self):
        # The headers that heed's headers include are part of its interface.
        self.requires("xtensor/[>=0.24 <0.28]", transitive_headers=True)
        self.requires("nlohmann_json/[>=3.9 <4]", transitive_headers=True)
        if self.options.blas == "openblas":
            self.requires("openblas/[>=0.3.20 <1]", transitive_headers=True, transitive_libs=True)

    def package_id(self):
        if not self.info.options.with_translator:
            self.info.clear()

    def validate(self):
        if self.settings.get_safe("compiler.cppstd"):
            check_min_cppstd(self, 20)
        if str(self.settings.get_safe("compiler")) in ("msvc", "Visual Studio"):
            raise ConanInvalidConfiguration("heed needs g++ 12, clang++ 14 or later: its kernels use their vector types")

    def generate(self):
        if not self.options.with_translator:
            return
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update({
            "HEED_BUILD_TRANSLATOR": True,
            "HEED_NATIVE": False,
            "HEED_MPI": False,
            "HEED_BLAS": "cblas" if self.options.blas == "openblas" else "none",
            "CMAKE_DISABLE_FIND_PACKAGE_ICU": True,  # SentencePiece and ICU, for raw text, are not packaged here
        })
        if self.options.blas == "openblas":
            openblas = self.dependencies["openblas"].cpp_info.aggregated_components()
            toolchain.cache_variables["BLA_VENDOR"] = "OpenBLAS"
            toolchain.cache_variables["CMAKE_LIBRARY_PATH"] = ";".join(openblas.libdirs)
            toolchain.cache_variables["CMAKE_INCLUDE_PATH"] = ";".join(openblas.includedirs)
        toolchain.generate()

    def build(self):
        if self.options.with_translator:
            cmake = CMake(self)
            cmake.configure()
            cmake.build(target="heed_translator")

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "*.hpp", os.path.join(self.source_folder, "include"), os.path.join(self.package_folder, "include"))
        if self.options.with_translator:
            copy(self, "*heed_translator.a", self.build_folder, os.path.join(self.package_folder, "lib"), keep_path=False)

    def package_info(self):
        # The CMake targets are those of heed's own package: heed::heed, heed::io, heed::kit, heed::translator. Conan
        # also creates one target for all, which requires another name.
        self.cpp_info.set_property("cmake_file_name", "heed")
        self.cpp_info.set_property("cmake_target_name", "heed::all")
        self.cpp_info.set_property("pkg_config_name", "heed-all")
        components = {
            "core": ("heed", ["xtensor::xtensor"]),
            "io": ("io", ["core", "nlohmann_json::nlohmann_json"]),
            "kit": ("kit", ["io"]),
        }
        if self.options.with_translator:
            components["translator"] = ("translator", ["kit"])
        for name, (target, requires) in components.items():
            component = self.cpp_info.components[name]
            component.set_property("cmake_target_name", f"heed::{target}")
            component.set_property("pkg_config_name", "heed" if name == "core" else f"heed-{target}")
            component.requires = requires
            component.bindirs = []
            component.libdirs = []

        core = self.cpp_info.components["core"]
        if self.options.blas == "openblas":
            core.requires.append("openblas::openblas")
            core.defines = ["HEED_BLAS_CBLAS"]
        else:
            core.defines = ["HEED_BLAS_NONE"]
        if self.settings.get_safe("os") in ("Linux", "FreeBSD"):
            core.system_libs = ["pthread"]
        if self.options.with_translator:
            translator = self.cpp_info.components["translator"]
            translator.libs = ["heed_translator"]
            translator.libdirs = ["lib"]
