"""A checkpoint from Python to Fortran and back: `exchange.py save`, fortran/exchange.f90, `exchange.py load`."""

import sys

import numpy as np
import pyscf

import outcore

mol = pyscf.M(atom="O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692", basis="cc-pvdz", verbose=0)
with outcore.World() as world:
    if sys.argv[1:] == ["save"]:
        mf = mol.RHF().run()
        arrays = {"density": mf.make_rdm1(), "core": mf.get_hcore()}
        outcore.checkpoint.save(world, "python.checkpoint", arrays, {"molecule": "water"})
        print(f"saved {', '.join(arrays)} of {mol.nao} functions")
    else:
        with outcore.checkpoint.load(world, "fortran.checkpoint") as saved:
            energy = float(saved["energy"][0])
            product = saved["product"][...]
        with outcore.checkpoint.load(world, "python.checkpoint") as saved:
            density, core = saved["density"][...], saved["core"][...]
        # Element (i, j) of Fortran is [j, i] here: its product of two symmetric matrices is the transpose.
        assert np.allclose(product.T, density @ core)
        print(f"one-electron energy {energy:.8f} Eh, expected {np.vdot(density, core):.8f}")
