"""CASSCF by PySCF, with full CI by Outcore, as a command.

Files:

    command, options:
        `outcore casscf`
    space:
        the choice of active orbitals: by number, by irrep, by atomic orbitals (AVAS)
    kept:
        orbitals from which another run continues
"""
