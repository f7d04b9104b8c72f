"""Packages that optional parts of Outcore need, and how to get them."""

from __future__ import annotations

from outcore.base.errors import OutcoreError

# Packages of the extras in pyproject.toml. Hints name packages, as pip may not know the extras of this Outcore.
EXTRAS = {
    "mpi": ("mpi4py>=4.0", "mpich>=4.2"),
    "chem": ("pyscf>=2.5", "scipy>=1.12"),
    "optimize": ("geometric>=1.0",),
    "plot": ("matplotlib>=3.8",),
    "hdf5": ("h5py>=3.9",),
    "qcschema": ("qcelemental>=0.50", "qcengine>=0.50", "qcmanybody>=0.6"),
    "ase": ("ase>=3.23",),
    "trexio": ("trexio>=2.5",),
    "cclib": ("cclib>=1.8,<2",),
    "zarr": ("zarr>=3",),
    "peers": ("dask[array]>=2024.1", "h5py>=3.11", "tensorstore>=0.1.70", "zarr>=3", "zarrs>=0.2"),
}
_EXTRA_OF = {
    "pyscf": "chem",
    "scipy": "chem",
    "geometric": "optimize",
    "mpi4py": "mpi",
    "matplotlib": "plot",
    "h5py": "hdf5",
    "qcelemental": "qcschema",
    "qcengine": "qcschema",
    "ase": "ase",
    "trexio": "trexio",
    "cclib": "cclib",
    "zarr": "zarr",
}
_HINT = "install it with"


def install(extra: str) -> str:
    """The command that installs what an extra needs."""
    return " ".join(["pip install", *(f"'{package}'" for package in EXTRAS[extra])])


def missing(error: ImportError, attempted: str) -> OutcoreError | None:
    """The error to raise instead, if the import failed because a package of an extra is missing; else None."""
    name = (error.name or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or name not in _EXTRA_OF:
        return None
    return needed(name, attempted)


def needed(package: str, attempted: str) -> OutcoreError:
    """An error that says that a package is missing, and how to install it."""
    hint = f"{package} is missing; {_HINT}: {install(_EXTRA_OF[package])}"
    return OutcoreError(None, attempted, detail=hint)


def is_missing(error: BaseException) -> bool:
    """Whether an error says that a package is not installed."""
    return isinstance(error, OutcoreError) and f"; {_HINT}" in error.detail
