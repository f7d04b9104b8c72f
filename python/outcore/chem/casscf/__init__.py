"""CASSCF by PySCF, with full CI by Outcore, as a command.

Files:

    command, options:
        `outcore casscf`
    space:
        which orbitals are active: by number, by irrep, by atomic orbitals (AVAS)
    kept:
        orbitals that another run goes on from
"""
