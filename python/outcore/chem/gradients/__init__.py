"""Nuclear gradients: densities contracted with derivatives of integrals, which are computed when they are needed
and never stored. Stored integrals do not help a derivative: those on disk are of the energy alone.

A method gives its one-particle densities, the energy-weighted density, and three-index densities where its
integrals are fitted (`densities`). This room knows no method but the SCF.

Files:

    scf, objects:
        the SCF, and its gradients by PySCF's names
    scanner, geometries:
        one geometry after another, and the checkpoint of the one under way
    densities, properties:
        densities that a gradient needs, moments and charges
    response, correlation:
        orbital relaxation, and three-index densities of a method after the SCF
    options, command:
        options of commands, and the lines that they show
    one_electron:
        nuclei, one-electron integrals, the overlap
    two_electron, exact, fitted:
        Coulomb and exchange, with exact integrals and with fitted ones
    least, forecast:
        the least memory, and the time
    three_index:
        a pass over derivatives of three-index integrals
"""
