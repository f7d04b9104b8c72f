"""The `outcore study` command."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import Annotated

import typer

from outcore.base.errors import OutcoreError
from outcore.job.preflight import check_directory
from outcore.study.runner import OutOfTime, Runner

STUDIES = {
    "passion": "disk-based Hartree-Fock on a slow, emulated storage: the tables and figures of the PASSION study",
    "chemio-hf": "C14H8F6 direct, semi-direct with several disk budgets, and on disk",
}


def command(
    name: Annotated[str, typer.Argument(help="; ".join(f"{n}: {text}" for n, text in STUDIES.items()))],
    directory: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Directory of the report (default: study-NAME)."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small molecule and few settings.")] = False,
    only: Annotated[
        str | None, typer.Option(metavar="SECTIONS", help="Run these sections only, separated by commas.")
    ] = None,
    within: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Begin no run after this time; the next call goes on from there."
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(help="Runs of each case; the median counts.")] = 1,
    scratch: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory of integrals (default: the scratch directory)."),
    ] = None,
) -> int:
    """Repeat an I/O study of the literature on this machine; writes report.md, results.json and figures.

    Finished runs are kept in DIR/runs and not repeated: remove it to begin anew.
    """
    if name not in STUDIES:
        raise typer.BadParameter(f"{name}: the studies are {', '.join(STUDIES)}")
    if repeats < 1:
        raise OutcoreError(errno.EINVAL, f"--repeats {repeats}", detail="at least one run is needed")
    if repeats > 1 and name != "passion":
        raise OutcoreError(errno.EINVAL, f"--repeats {repeats}", detail=f"{name} makes each run once")
    sections = _sections(name, only)
    from outcore.job.scratch import find_scratch

    place = Path(find_scratch(scratch))
    out = directory or Path(f"study-{name}")
    try:
        out.mkdir(parents=True, exist_ok=True)
        check_directory(out, "write the study")
    except OSError as error:
        if isinstance(error, OutcoreError):
            raise
        raise OutcoreError(error.errno or errno.EIO, "write the study", path=out) from error
    if name == "passion":
        complete = _passion(Runner(out, str(place), within, repeats, _say), quick, sections, place)
    else:
        complete = _chemio(out, quick, within, place)
    if not complete:
        _say(f"time is over; the same command goes on from the results in {out}")
    return 0


def _sections(study: str, only: str | None) -> tuple[str, ...]:
    if only is None:
        return ()
    from outcore.study.passion import NAMES

    known = NAMES if study == "passion" else ()
    chosen = tuple(part.strip() for part in only.split(","))
    if unknown := [part for part in chosen if part not in known]:
        raise typer.BadParameter(f"{unknown[0]}: the sections of {study} are {', '.join(known) or 'none'}")
    return chosen


def _passion(runner: Runner, quick: bool, only: tuple[str, ...], scratch: Path) -> bool:
    from outcore.study import passion
    from outcore.study.passion_report import Document

    study = passion.Passion(runner, passion.QUICK if quick else passion.FULL)
    complete = True
    try:
        study.run(only)
    except OutOfTime:
        complete = False
    device = study.known_device()
    if device is not None:
        _wrote(Document(study, device, scratch).write())
    return complete


def _chemio(directory: Path, quick: bool, within: float | None, scratch: Path) -> bool:
    from outcore.study.chemio_hf import ChemioHf

    study = ChemioHf(directory, scratch, within, quick, _say)
    try:
        study.run()
    except OutOfTime:
        return False
    finally:
        _wrote(study.write())
    return True


def _wrote(paths: list[Path]) -> None:
    for path in paths:
        print(f"wrote {path}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
