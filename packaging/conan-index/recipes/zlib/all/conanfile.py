from conan import ConanFile
from conan.tools.gnu import PkgConfig
from conan.tools.system.package_manager import Apt


class SystemZlib(ConanFile):
    name = "zlib"
    description = "zlib as the system has it"
    license = "Zlib"
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"

    def system_requirements(self):
        Apt(self).install(["zlib1g-dev"], check=True)

    def package_id(self):
        self.info.clear()

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "ZLIB")
        self.cpp_info.set_property("cmake_target_name", "ZLIB::ZLIB")
        PkgConfig(self, "zlib").fill_cpp_info(self.cpp_info)
