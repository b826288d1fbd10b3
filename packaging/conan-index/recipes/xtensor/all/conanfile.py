from conan import ConanFile
from conan.tools.gnu import PkgConfig
from conan.tools.system.package_manager import Apt


class SystemXtensor(ConanFile):
    name = "xtensor"
    description = "xtensor as the system has it"
    license = "BSD-3-Clause"
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"

    def system_requirements(self):
        Apt(self).install(["libxtensor-dev"], check=True)

    def package_id(self):
        self.info.clear()

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "xtensor")
        self.cpp_info.set_property("cmake_target_name", "xtensor")
        PkgConfig(self, "xtensor").fill_cpp_info(self.cpp_info)
