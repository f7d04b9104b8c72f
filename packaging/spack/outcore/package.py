from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class Outcore(PythonPackage):
    """Arrays and files larger than memory, for quantum chemistry: Hartree-Fock, RI-MP2, CI and coupled
    cluster whose integrals, vectors and amplitudes lie in memory, on node-local disks or on other nodes."""

    license("Apache-2.0")

    version("main", branch="main")

    variant("mpi", default=True, description="Several processes")
    variant("chem", default=True, description="Methods of quantum chemistry, on integrals of PySCF")
    variant("uring", default=True, description="Asynchronous I/O by io_uring")

    depends_on("c", type="build")
    depends_on("cxx", type="build")

    depends_on("python@3.11:", type=("build", "link", "run"))
    depends_on("cmake@3.20:", type="build")
    depends_on("ninja", type="build")
    depends_on("py-scikit-build-core@0.11:", type="build")
    depends_on("py-nanobind@2.2:", type="build")
    depends_on("c-blosc2", type=("build", "link"))
    depends_on("liburing", type=("build", "link"), when="+uring")
    depends_on("mpi", type=("build", "link", "run"), when="+mpi")

    depends_on("py-numpy@1.26:", type=("build", "run"))
    depends_on("py-scipy@1.12:", type=("build", "run"))
    depends_on("py-typer@0.12:0.28", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-mpi4py@4:", type=("build", "run"), when="+mpi")
    depends_on("py-pyscf@2.5:", type=("build", "run"), when="+chem")

    # A C++20 library with <ranges> and calendar types complete.
    conflicts("%gcc@:11")

    def config_settings(self, spec, prefix):
        blosc2 = spec["c-blosc2"]
        settings = {
            "cmake.define.BLOSC2_INCLUDE": blosc2.prefix.include,
            "cmake.define.BLOSC2_LIBRARY": blosc2.libs[0],
        }
        if spec.satisfies("+mpi"):
            settings["cmake.define.OUTCORE_MPI_INCLUDES"] = spec["mpi"].prefix.include
        else:
            settings["cmake.define.OUTCORE_MPI"] = "OFF"
        return settings

    def test_doctor(self):
        """outcore finds its library, its engine and a scratch directory"""
        outcore = which(self.prefix.bin.outcore)
        assert "I/O engine" in outcore("doctor", output=str.split, error=str.split)

    def test_einsum(self):
        """an array on disk is multiplied in less memory than it has"""
        python = which(self.spec["python"].prefix.bin.python3)
        program = (
            "import numpy, outcore\n"
            "with outcore.World(memory='64MB') as world:\n"
            "    axis = outcore.Tiling(600, tile=100)\n"
            "    a = outcore.Array.from_numpy(world, numpy.eye(600), (axis, axis), where='disk')\n"
            "    print(outcore.einsum('ij,jk->ik', a, a, memory='1MB').to_numpy().trace())\n"
        )
        assert "600.0" in python("-c", program, output=str.split, error=str.split)
