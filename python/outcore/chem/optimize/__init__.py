"""Geometry optimisation with geomeTRIC.

Files:

    command:
        `outcore optimize`
    steps:
        energies and gradients of geometries, kept for another run, and their trajectory
    search:
        geomeTRIC at the first process, energies and gradients at all
"""
