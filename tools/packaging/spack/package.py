"""Spack recipe: copy it to packages/mneme_fcl/ of a Spack repository, then `spack install mneme-fcl`."""
from spack.package import *
from spack_repo.builtin.build_systems.generic import Package


class MnemeFcl(Package):
    """Simulator for federated continual learning."""

    url = "file:///opt/mneme_fcl-0.1.0.tar.gz"  # made by `tools/package sdist`
    license("Apache-2.0")
    version("0.1.0")

    resource(name="caf", placement="caf", when="@0.1.0",
             url="https://github.com/actor-framework/actor-framework/archive/refs/tags/0.18.7.tar.gz",
             sha256="d5c3abe8fd67a729aab1baeece10367637d903ba335f4c79378bcadfbcd34552")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("help2man", type="build")
    depends_on("py-torch@2.11")
    depends_on("catch2@3:")
    depends_on("eigen@3.4:")
    depends_on("nlohmann-json")
    depends_on("zlib-api")
    depends_on("xz")
    depends_on("libjpeg-turbo")
    depends_on("libpng")
    depends_on("icu4c")
    depends_on("openssl@3:")
    depends_on("sqlite")
    depends_on("mimalloc")
    depends_on("tomlplusplus")
    depends_on("cli11")
    depends_on("tl-expected")
    depends_on("libmicrohttpd")
    depends_on("xxhash")

    def install(self, spec, prefix):
        torch = join_path(spec["py-torch"].prefix, spec["python"].package.platlib)
        Executable("tools/packaging/from_source.sh")("caf", torch, prefix)
