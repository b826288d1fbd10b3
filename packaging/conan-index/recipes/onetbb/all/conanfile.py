from conan import ConanFile
from conan.tools.gnu import PkgConfig
from conan.tools.system.package_manager import Apt


class SystemOneTBB(ConanFile):
    name = "onetbb"
    description = "oneTBB as the system has it"
    license = "Apache-2.0"
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"

    def system_requirements(self):
        Apt(self).install(["libtbb-dev"], check=True)

    def package_id(self):
        self.info.clear()

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "TBB")
        self.cpp_info.set_property("cmake_target_name", "TBB::tbb")
        PkgConfig(self, "tbb").fill_cpp_info(self.cpp_info)
