# SPDX-License-Identifier: BSD-3-Clause
"""conan.py SOURCE SCRATCH VERSION COMPILER FLAG...: packaging/conan, without Conan.

The recipe runs with each of its options, and with stand-ins for its imports, which copy files as Conan does. Its
test_package is compiled with the settings of package_info. `conan create` tests the rest, see docs/start/packages.md.
"""

import fnmatch
import importlib.util
import os
import shutil
import subprocess
import sys
import types

source, scratch, version, compiler, *flags = sys.argv[1:]
recipe = os.path.join(source, "packaging", "conan", "conanfile.py")


# ---- stand-ins -----------------------------------------------------------------------------------------------------


class ConanFile:
    """The attributes that Conan sets before it calls a recipe."""


def copy(conanfile, pattern, src, dst, keep_path=True):
    copied = []
    fixed = os.path.dirname(pattern.partition("*")[0])  # a build may be next to the sources
    for folder, _, names in os.walk(os.path.join(src, fixed)) if "*" in pattern else [(src, [], os.listdir(src))]:
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), src)
            if fnmatch.fnmatch(path, pattern):
                to = os.path.join(dst, path if keep_path else name)
                os.makedirs(os.path.dirname(to), exist_ok=True)
                shutil.copy(os.path.join(src, path), to)
                copied.append(to)
    return copied


def load(conanfile, path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Refused(Exception):
    pass


def check_min_cppstd(conanfile, least):
    if int(str(conanfile.settings.values["compiler.cppstd"]).removeprefix("gnu")) < least:
        raise Refused("C++ standard")


def module(name, **members):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(members)


module("conan", ConanFile=ConanFile)
module("conan.errors", ConanInvalidConfiguration=Refused)
module("conan.tools")
module("conan.tools.build", check_min_cppstd=check_min_cppstd)
module("conan.tools.cmake", CMake=None, CMakeDeps=None, CMakeToolchain=None)
module("conan.tools.files", copy=copy, load=load)


class Settings:
    def __init__(self, **values):
        self.values = {name.replace("_", "."): value for name, value in values.items()}

    def get_safe(self, name):
        return self.values.get(name)


class Options(types.SimpleNamespace):
    pass


class Info:
    def __init__(self, options):
        self.options, self.cleared = options, False

    def clear(self):
        self.cleared = True


class CppInfo:
    def __init__(self):
        self.properties, self.requires, self.defines, self.libs, self.system_libs = {}, [], [], [], []
        self.components = Components()

    def set_property(self, name, value):
        self.properties[name] = value


class Components(dict):
    def __missing__(self, name):
        self[name] = CppInfo()
        return self[name]


# ---- the recipe, called as by Conan ---------------------------------------------------------------------------------------


def require(condition, message):
    if not condition:
        sys.exit(f"FAILED: {message}")


def package(folder, settings, **options):
    """The recipe after `conan create` with these options, its package in `folder`."""
    spec = importlib.util.spec_from_file_location("heed_recipe", recipe)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    self = found.HeedConan()
    for name, value in options.items():
        require(value in found.HeedConan.options[name], f"there is no option {name}={value}")
    self.settings = settings
    self.options = Options(**{**found.HeedConan.default_options, **options})
    self.recipe_folder = os.path.dirname(recipe)
    self.export_sources_folder = self.source_folder = os.path.join(folder, "source")
    self.build_folder, self.package_folder = os.path.join(folder, "build"), os.path.join(folder, "package")
    self.required = {}
    self.requires = lambda reference, **traits: self.required.update({reference.split("/")[0]: traits})
    self.info, self.cpp_info = Info(self.options), CppInfo()
    self.set_version()
    self.export_sources()
    self.configure()
    self.requirements()
    self.package_id()
    self.validate()
    if self.options.with_translator:
        for built in ("libheed_translator.a", "CMakeFiles/heed_translator.dir/translator/choi.cpp.o"):
            os.makedirs(os.path.dirname(os.path.join(self.build_folder, "src", built)), exist_ok=True)
            open(os.path.join(self.build_folder, "src", built), "w").close()
    self.package()
    self.package_info()
    return self


def files(folder):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)


shutil.rmtree(scratch, ignore_errors=True)
linux = {"os": "Linux", "compiler": "gcc", "compiler_cppstd": "20"}
headers = [os.path.join("include", name) for name in files(os.path.join(source, "include")) if name.endswith(".hpp")]

for blas, define in (("openblas", "HEED_BLAS_CBLAS"), ("none", "HEED_BLAS_NONE")):
    for with_translator in (False, True):
        name = f"{blas}, with_translator={with_translator}"
        made = package(os.path.join(scratch, name), Settings(**linux), blas=blas, with_translator=with_translator)
        require(made.version == version, f"the recipe calls itself {made.version}, should be {version}")
        require(made.package_type == ("static-library" if with_translator else "header-library"), f"{name}: {made.package_type}")
        require(made.info.cleared != with_translator, f"{name}: a header library has one package for all settings, others not")
        require(("openblas" in made.required) == (blas == "openblas"), f"{name} requires {sorted(made.required)}")
        expected = sorted(headers + ["licenses/LICENSE"] + ["lib/libheed_translator.a"] * with_translator)
        require(files(made.package_folder) == expected, f"{name}: the package holds {set(files(made.package_folder)) ^ set(expected)}")
        # CMake builds from the exported files.
        for needed in ("CMakeLists.txt", "LICENSE", "cmake/heed_dependencies.cmake", "src/CMakeLists.txt"):
            require(os.path.exists(os.path.join(made.source_folder, needed)), f"{needed} is not exported")
        parts = made.cpp_info.components
        targets = {part.properties["cmake_target_name"] for part in parts.values()}
        require({"heed::heed", "heed::io", "heed::kit"} <= targets, f"{name}: the targets are {targets}")
        require(("heed::translator" in targets) == with_translator, f"{name}: the targets are {targets}")
        require(made.cpp_info.properties["cmake_target_name"] not in targets, f"{name}: two targets have one name")
        require(parts["core"].defines == [define], f"{name} defines {parts['core'].defines}")
        # Conan rejects a required package that no component uses, and vice versa.
        used = {reference.split("::")[0] for part in parts.values() for reference in part.requires if "::" in reference}
        require(used == set(made.required), f"{name}: components use {used}, the package requires {set(made.required)}")
        for part in parts.values():
            local = {reference for reference in part.requires if "::" not in reference}
            require(local <= set(parts), f"{name}: there is no component {local - set(parts)}")

for settings in ({**linux, "compiler_cppstd": "17"}, {**linux, "compiler": "msvc"}):
    try:
        package(os.path.join(scratch, "refused"), Settings(**settings))
    except Refused:
        continue
    require(False, f"the recipe takes {settings}")

# test_package, with the flags of package_info.
made = package(os.path.join(scratch, "test"), Settings(**linux), blas="none")
core = made.cpp_info.components["core"]
program = os.path.join(scratch, "test_package")
command = [compiler, "-std=c++20", *(f"-D{define}" for define in core.defines), f"-I{made.package_folder}/include", *flags,
           os.path.join(source, "packaging", "conan", "test_package", "test_package.cpp"), "-o", program,
           *(f"-l{library}" for library in core.system_libs)]
subprocess.run(command, check=True)
said = subprocess.run([program], check=True, capture_output=True, text=True).stdout
require(said == f"heed {version}: 1*1 + 2*2 = 5\n", f"test_package said {said}")
