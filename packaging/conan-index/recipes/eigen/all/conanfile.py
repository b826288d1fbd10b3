from conan import ConanFile
from conan.tools.gnu import PkgConfig
from conan.tools.system.package_manager import Apt


class SystemEigen(ConanFile):
    name = "eigen"
    description = "Eigen as the system has it"
    license = "MPL-2.0"
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"

    def system_requirements(self):
        Apt(self).install(["libeigen3-dev"], check=True)

    def package_id(self):
        self.info.clear()

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "Eigen3")
        self.cpp_info.set_property("cmake_target_name", "Eigen3::Eigen")
        PkgConfig(self, "eigen3").fill_cpp_info(self.cpp_info)
