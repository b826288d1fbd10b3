import pathlib
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy
from conan.tools.layout import basic_layout


class Rill(ConanFile):
    name = "rill"
    description = "Gradient aggregation for distributed learning"
    license = "Apache-2.0"
    topics = "allreduce", "distributed-learning", "gradient-compression", "header-only"
    package_type = "header-library"
    implements = ["auto_header_only"]
    settings = "os", "arch", "compiler", "build_type"
    # The components that a consumer gets on request: those that need somebody else's library, and the one that has a
    # source. The headers are always all there.
    options = {name: [True, False] for name in ("simulated", "train", "mpi", "tcp", "eigen", "xtensor", "tbb", "graph",
                                            "compiled")}
    default_options = {name: False for name in options}
    exports_sources = "include/*", "cmake/compiled_source.cmake", "LICENSE"
    no_copy_source = True
    test_package_folder = "tests/consumer/test_package"

    def set_version(self):
        config = pathlib.Path(self.recipe_folder, "include/rill/core/config.hpp").read_text()
        self.version = ".".join(re.findall(r"^#define RILL_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", config, re.MULTILINE))

    def layout(self):
        basic_layout(self)

    def requirements(self):
        needs = {"simulated": ["boost/[>=1.74 <2]"], "train": ["eigen/[>=3.4 <4]", "zlib/[>=1.2.11 <2]"],
                 "mpi": ["openmpi/[>=4.1 <6]"], "tcp": ["openssl/[>=3 <4]"], "eigen": ["eigen/[>=3.4 <4]"], "xtensor": ["xtensor/[>=0.24 <1]"],
                 "tbb": ["onetbb/[>=2021.8]"], "graph": ["boost/[>=1.74 <2]"]}
        for reference in sorted({each for name in needs if self.options.get_safe(name) for each in needs[name]}):
            self.requires(reference)

    def validate(self):
        check_min_cppstd(self, 20)

    def package(self):
        copy(self, "LICENSE", self.source_folder, pathlib.Path(self.package_folder, "licenses"))
        copy(self, "*.?pp", pathlib.Path(self.source_folder, "include"), pathlib.Path(self.package_folder, "include"))
        copy(self, "cmake/*", self.source_folder, self.package_folder)

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "rill")
        self.cpp_info.set_property("cmake_target_name", "rill::all")
        self._component("rill", below=[])
        self._component("threads", system_libs=["pthread"])
        if self.options.simulated:
            self._component("simulated", links=["boost::context"])
            self._component("testing", below=["threads", "simulated"])
        if self.options.train:
            self._component("train", links=["eigen::eigen", "zlib::zlib"])
        if self.options.mpi:
            self._component("mpi", below=["threads"], links=["openmpi::openmpi"])
        if self.options.tcp:
            self._component("tcp", below=["threads"], links=["openssl::ssl"])
        for name, link in {"eigen": "eigen::eigen", "xtensor": "xtensor::xtensor", "tbb": "onetbb::onetbb",
                           "graph": "boost::headers"}.items():
            if self.options.get_safe(name):
                self._component(name, links=[link])

        if self.options.compiled:
            self._component("compiled", below=["threads"])
            self.cpp_info.components["compiled"].defines = ["RILL_COMPILED"]
            self.cpp_info.set_property("cmake_build_modules", ["cmake/compiled_source.cmake"])

    def _component(self, name, below=("rill",), links=(), system_libs=()):
        """The CMake target rill::<name> and the pkg-config module of the same component."""
        component = self.cpp_info.components[name]
        component.set_property("cmake_target_name", f"rill::{name}")
        component.set_property("pkg_config_name", "rill" if name == "rill" else f"rill-{name}")
        component.requires = [*below, *links]
        component.system_libs = list(system_libs)
        component.bindirs = component.libdirs = []
