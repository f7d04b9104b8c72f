"""Files of other programs with orbitals and densities. The ending of a name chooses the format.

Files:

    orbitals:
        orbitals of an SCF: Molden, chkfiles of PySCF, TREXIO, values on a grid
    densities:
        one-particle densities: natural orbitals, matrices, values on a grid, TREXIO
    cube:
        values on a grid
    hdf5_text:
        texts in HDF5 files that may be damaged
    trexio_file:
        contents and conventions of TREXIO files
"""
