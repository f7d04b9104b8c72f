"""Other programs that call Outcore, or read its results.

Files:

    job, methods:
        one calculation for another program: a command, its options, its results; names of methods
    qcschema, qcengine:
        AtomicInput and AtomicResult (`outcore run input.json`), and the harness of QCEngine
    ase, geometries:
        a calculator of ASE, and the checkpoints that it keeps from geometry to geometry
    pyscf:
        disk arrays as three-index integrals of PySCF
    cclib:
        results as data of cclib
"""
