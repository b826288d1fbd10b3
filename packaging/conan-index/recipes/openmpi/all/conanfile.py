from conan import ConanFile
from conan.tools.gnu import PkgConfig
from conan.tools.system.package_manager import Apt


class SystemOpenMPI(ConanFile):
    name = "openmpi"
    description = "Open MPI as the system has it"
    license = "BSD-3-Clause"
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"

    def system_requirements(self):
        Apt(self).install(["libopenmpi-dev", "openmpi-bin"], check=True)

    def package_id(self):
        self.info.clear()

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "MPI")
        self.cpp_info.set_property("cmake_target_name", "MPI::MPI_C")
        PkgConfig(self, "ompi-c").fill_cpp_info(self.cpp_info)
