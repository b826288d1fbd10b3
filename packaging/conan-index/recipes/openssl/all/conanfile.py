from conan import ConanFile
from conan.tools.system.package_manager import Apt


class SystemOpenssl(ConanFile):
    name = "openssl"
    description = "OpenSSL's libcrypto as the system has it"
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
        crypto = self.cpp_info.components["crypto"]
        crypto.set_property("cmake_target_name", "OpenSSL::Crypto")
        crypto.set_property("pkg_config_name", "libcrypto")
        crypto.includedirs = crypto.libdirs = crypto.bindirs = []
        crypto.system_libs = ["crypto"]
