"""Files of other programs with orbitals and densities, by the ending of their names.

Files:

    orbitals:
        orbitals of an SCF: Molden, chkfiles of PySCF, TREXIO
    densities:
        one-particle densities: natural orbitals, matrices, values on a grid, TREXIO
    hdf5_text:
        texts of HDF5 files that may be damaged
    trexio_file:
        what TREXIO files hold, and how
"""
