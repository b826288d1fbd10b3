from conan import ConanFile
from conan.tools.system.package_manager import Apt


class SystemBoost(ConanFile):
    name = "boost"
    description = "Boost.Context and Boost's headers as the system has them"
    license = "BSL-1.0"
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"

    def system_requirements(self):
        Apt(self).install(["libboost-context-dev"], check=True)

    def package_id(self):
        self.info.clear()

    def package_info(self):
        # Boost has no pkg-config file, and lies where every compiler looks.
        self.cpp_info.set_property("cmake_file_name", "Boost")
        context = self.cpp_info.components["context"]
        context.set_property("cmake_target_name", "Boost::context")
        context.includedirs = context.libdirs = context.bindirs = []
        context.system_libs = ["boost_context"]
        headers = self.cpp_info.components["headers"]
        headers.set_property("cmake_target_name", "Boost::headers")
        headers.includedirs = headers.libdirs = headers.bindirs = []
