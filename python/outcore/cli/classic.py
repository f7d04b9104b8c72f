"""`outcore import-dra` and `outcore export-dra`: exchange with the DRA of Global Arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from outcore.arrays.disk_array import DiskArray
from outcore.job.world import World
from outcore.keep import classic


def import_dra(
    meta: Annotated[Path, typer.Argument(help="the .info file of the array, or its name without .info")],
    path: Annotated[
        Path | None, typer.Argument(help="directory of the new disk array (default: NAME.array)")
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace a disk array that is there.")] = False,
) -> None:
    """Import a disk array that the classic DRA of Global Arrays has written. The processes of a job
    share the work, in portions of 32 MB each."""
    target = path or Path(f"{meta.name.removesuffix('.info')}.array")
    with World() as world:
        array = classic.import_dra(world, meta, target, overwrite=overwrite)
        if world.rank == 0:
            print(f"{target}: {array.dtype.name}{list(array.shape)}, {array.nbytes / 1e6:.1f} MB")
        array.close()


def export_dra(
    path: Annotated[Path, typer.Argument(help="directory of a disk array")],
    name: Annotated[Path, typer.Argument(help="name of the classic array: NAME.info and NAME are made")],
    files: Annotated[int, typer.Option(help="Number of files; if more than 1: NAME.0, NAME.1, ..")] = 1,
    overwrite: Annotated[bool, typer.Option(help="Replace an array that is there.")] = False,
) -> None:
    """Export a disk array in the form that the classic DRA of Global Arrays opens. The processes of a job
    share the work, in portions of 32 MB each."""
    with World() as world, DiskArray.open(world, path) as array:
        classic.export_dra(array, name, files=files, overwrite=overwrite)
        if world.rank == 0:
            print(f"{name}.info: {array.dtype.name}{list(array.shape)}, {array.nbytes / 1e6:.1f} MB")
