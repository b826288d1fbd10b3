from conan import ConanFile
from conan.tools.system.package_manager import Apt


class SystemOpenssl(ConanFile):
    name = "openssl"
    description = "OpenSSL as the system has it"
    license = "Apache-2.0"
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"

    def system_requirements(self):
        Apt(self).install(["libssl-dev"], check=True)

    def package_id(self):
        self.info.clear()

    def package_info(self):
        # It lies where every compiler looks.
        self.cpp_info.set_property("cmake_file_name", "OpenSSL")
        for name, target in {"crypto": "OpenSSL::Crypto", "ssl": "OpenSSL::SSL"}.items():
            library = self.cpp_info.components[name]
            library.set_property("cmake_target_name", target)
            library.set_property("pkg_config_name", f"lib{name}")
            library.includedirs = library.libdirs = library.bindirs = []
            library.system_libs = [name]
        self.cpp_info.components["ssl"].requires = ["crypto"]
