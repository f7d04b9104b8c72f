"""Damaged files of every kind: the damage is an OutcoreError, or harmless; nothing outside is touched.

OUTCORE_MUTATIONS: how many of each kind (default 40); OUTCORE_MUTATION_SEED: where they begin.
"""

from __future__ import annotations

import io
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from random import Random
from typing import Any

import kept_kinds
import mutation
import numpy as np
import pytest

import outcore
from outcore import checkpoint
from outcore.chem import restart
from outcore.cli import inspect as inspect_command
from outcore.job.collective import in_gate

COUNT = int(os.environ.get("OUTCORE_MUTATIONS", "40"))
SEED = int(os.environ.get("OUTCORE_MUTATION_SEED", "1"))
SECONDS = 20  # no single file takes longer to refuse

World = outcore.World
Content = Any


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World("self") as made:
        yield made


@contextmanager
def _limited() -> Iterator[None]:
    def too_long(*_: object) -> None:
        raise TimeoutError("a damaged file keeps its reader waiting")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _values(seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 50, (40, 50)).astype(float)


def _make_array(world: World, place: Path, seed: int, codec: str = "none") -> None:
    with outcore.DiskArray(
        world, (40, 50), path=place / "a", chunk=(16, 32), codec=codec, metadata={"n": seed}
    ) as array:
        array[...] = _values(seed)
        array.flush()
        array[:20] = _values(seed + 1)[:20]  # tables have two sides


def _read_array(world: World, place: Path) -> Content:
    with outcore.DiskArray.open(world, place / "a") as array:
        return array.metadata, array[...]


def _write_array(world: World, place: Path) -> None:
    with outcore.DiskArray.open(world, place / "a", read_only=False) as array:
        array[...] = 7.0


def _make_codec(world: World, place: Path, seed: int) -> None:
    _make_array(world, place, seed, "blosc2")


def _make_sparse(world: World, place: Path, seed: int) -> None:
    nonzero = np.array([[True, False], [True, True]])
    with outcore.BlockSparseArray(world, [[0, 3, 20], [0, 10, 40]], nonzero, path=place / "a") as array:
        for tile in array.tiles:
            array.put_tile(tile, np.full(array.tile_shape(tile), float(seed) + sum(tile)))


def _read_sparse(world: World, place: Path) -> Content:
    with outcore.BlockSparseArray.open(world, place / "a") as array:
        return array.metadata, array.tilings, [array.get_tile(tile) for tile in array.tiles]


def _write_sparse(world: World, place: Path) -> None:
    with outcore.BlockSparseArray.open(world, place / "a", read_only=False) as array:
        for tile in array.tiles:
            array.put_tile(tile, np.ones(array.tile_shape(tile)))


def _make_checkpoint(world: World, place: Path, seed: int) -> None:
    arrays = {"a": _values(seed), "b": _values(seed + 1), "empty": np.zeros((0, 3)), "one": np.float64(3)}
    with outcore.GlobalArray(world, (40, 50)) as shared:
        shared[...] = _values(seed + 2)
        checkpoint.save(world, place / "c", {**arrays, "shared": shared}, {"cycle": seed})


def _read_checkpoint(world: World, place: Path) -> Content:
    with checkpoint.load(world, place / "c") as saved:
        return saved.meta, {
            name: each if isinstance(each, np.ndarray) else each[...] for name, each in saved.items()
        }


def _write_checkpoint(world: World, place: Path) -> None:
    checkpoint.save(world, place / "c", {"a": np.ones(3)}, {"cycle": 0})


def _make_components(world: World, place: Path, seed: int) -> None:
    """An array of two processes, which has two components."""
    program = (
        "import numpy, outcore, sys\n"
        "with outcore.World() as world:\n"
        "    place, seed = sys.argv[1], int(sys.argv[2])\n"
        "    with outcore.DiskArray(world, (40, 50), path=place, chunk=(8, 16)) as array:\n"
        "        block = numpy.random.default_rng(seed).integers(0, 50, (40, 50)).astype(float)\n"
        "        array.write_all(block)\n"
    )
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip("no mpiexec beside the interpreter")
    subprocess.run([mpiexec, "-n", "2", sys.executable, "-c", program, place / "a", str(seed)], check=True)


def _orbitals(place: Path) -> tuple[Any, restart.Checkpoint]:
    from pyscf import gto, scf

    mf = scf.RHF(gto.M(atom="H 0 0 0; H 0 0 0.7", basis="sto-3g", verbose=0))
    return mf, restart.Checkpoint(mf, "RHF", place / "s")


def _make_orbitals(world: World, place: Path, seed: int) -> None:
    mf, saved = _orbitals(place)
    _, both = mf.eig(mf.get_hcore(), mf.get_ovlp())
    c, s = np.cos(seed), np.sin(seed)
    turned = both @ np.array([[c, -s], [s, c]])  # others for another seed
    orbitals = {"mo_coeff": turned, "mo_energy": np.zeros(2), "mo_occ": np.array([2.0, 0.0])}
    saved.save(orbitals, 3, -1.0, converged=True)


def _read_orbitals(world: World, place: Path) -> Content:
    mf, _ = _orbitals(place)
    density, meta = restart.density(mf, "RHF", place / "s")
    return density, meta


Kind = tuple[
    Callable[[World, Path, int], None], Callable[[World, Path], Content], Callable[[World, Path], None] | None
]
KINDS: dict[str, Kind] = {
    "array": (_make_array, _read_array, _write_array),
    "codec": (_make_codec, _read_array, _write_array),
    "sparse": (_make_sparse, _read_sparse, _write_sparse),
    "components": (_make_components, _read_array, _write_array),
    "checkpoint": (_make_checkpoint, _read_checkpoint, _write_checkpoint),
    "orbitals": (_make_orbitals, _read_orbitals, None),
    "integrals": (kept_kinds.make_integrals, kept_kinds.read_integrals, None),
    "fitted": (kept_kinds.make_fitted, kept_kinds.read_fitted, None),
}


def _same(one: Content, two: Content) -> bool:
    if isinstance(one, dict):
        return isinstance(two, dict) and one.keys() == two.keys() and all(_same(one[k], two[k]) for k in one)
    if isinstance(one, tuple | list):
        return len(one) == len(two) and all(map(_same, one, two))
    return bool(np.array_equal(one, two))


def _snapshot(root: Path) -> dict[str, bytes]:
    return {str(each.relative_to(root)): each.read_bytes() for each in mutation.files(root)}


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_found_or_harmless_and_nothing_outside_changes(
    world: World, tmp_path: Path, kind: str
) -> None:
    make, read, write = KINDS[kind]
    good, other, place = (tmp_path / name for name in ("good", "other", "place"))
    for n, root in enumerate((good, other)):
        root.mkdir()
        make(world, root, 10 * n)
    content, outside = read(world, good), _snapshot(other)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    counts: Counter[str] = Counter()
    for seed in range(SEED, SEED + COUNT):
        random = Random(f"{kind} {seed}")
        shutil.copytree(good, place)
        forged = random.random() < 0.3
        damage = mutation.forge if forged else random.choice(mutation.DAMAGE)
        what = damage(place, other, random)
        with _limited():
            try:
                found = read(world, place)
                same = _same(found, content)
                # A program that makes checksums can write any content: the test asks only whether it is valid
                # content.
                assert same or forged, f"seed {seed}: {what}: other content was read"
                counts["harmless" if same else "forged"] += 1
            except outcore.OutcoreError:
                counts["found"] += 1
            _verify(next(place.iterdir()))
            if write is not None and random.random() < 0.5:
                try:
                    write(world, place)
                except outcore.OutcoreError:
                    counts["not written"] += 1
        assert _snapshot(other) == outside, f"seed {seed}: {what}: files elsewhere were changed"
        shutil.rmtree(place)
    print("\nMUTATIONS", kind, dict(counts))
    assert counts["found"] > COUNT // 5
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    assert grown_kb < 600_000, f"{grown_kb} kB of memory were taken for what a file says"


def _verify(path: Path) -> None:
    for command in (inspect_command.verify, inspect_command.inspect):
        with suppress(outcore.OutcoreError), redirect_stdout(io.StringIO()):
            command(path)


def test_exchanged_arrays_of_a_checkpoint_are_named(world: World, tmp_path: Path, capsys: Any) -> None:
    _make_checkpoint(world, tmp_path, 1)
    arrays = tmp_path / "c" / "arrays.1"
    (arrays / "a").rename(arrays / "x")
    (arrays / "b").rename(arrays / "a")
    (arrays / "x").rename(arrays / "b")
    with checkpoint.load(world, tmp_path / "c") as saved, pytest.raises(outcore.OutcoreError) as failure:
        _ = saved["a"]
    assert "it is array b of generation 1" in str(failure.value)
    assert "not array a of generation 1" in str(failure.value)
    assert inspect_command.verify(tmp_path / "c") == 1
    assert "it is array b of generation 1" in capsys.readouterr().out


@pytest.mark.parametrize("source", ["another generation", "another checkpoint", "a copy that went on"])
def test_an_array_from_elsewhere_is_named(world: World, tmp_path: Path, source: str) -> None:
    def save(name: str, value: float) -> None:
        checkpoint.save(world, tmp_path / name, {"a": np.full(4, value)})

    save("c", 1)
    if source == "another generation":
        shutil.copytree(tmp_path / "c/arrays.1/a", tmp_path / "kept")
    elif source == "another checkpoint":
        save("d", 2)
        save("d", 2)
        shutil.copytree(tmp_path / "d/arrays.2/a", tmp_path / "kept")
    else:
        shutil.copytree(tmp_path / "c", tmp_path / "d")
        save("d", 2)
        shutil.copytree(tmp_path / "d/arrays.2/a", tmp_path / "kept")
    save("c", 1)
    shutil.rmtree(tmp_path / "c/arrays.2/a")
    shutil.copytree(tmp_path / "kept", tmp_path / "c/arrays.2/a")
    with (
        checkpoint.load(world, tmp_path / "c") as saved,
        pytest.raises(outcore.OutcoreError, match="not array a"),
    ):
        _ = saved["a"]


def test_a_generation_that_is_a_link_is_neither_written_to_nor_emptied(world: World, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("x")
    name = tmp_path / "c"
    for generation in (1, 2):
        checkpoint.save(world, name, {"a": np.ones(3)})
        (name / f"arrays.{generation + 1}").symlink_to(outside)
    checkpoint.save(world, name, {"a": np.ones(3)})
    assert [each.name for each in outside.iterdir()] == ["mine"]
    with checkpoint.load(world, name) as saved:
        assert saved["a"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", ["manifest.new", "table.0.3", "component.0"])
@pytest.mark.parametrize("kind", ["link", "hard link", "FIFO", "directory"])
def test_a_name_that_somebody_left_leads_nowhere(world: World, tmp_path: Path, name: str, kind: str) -> None:
    _make_array(world, tmp_path, 1)
    outside, left = tmp_path / "outside", tmp_path / "a" / name
    outside.write_bytes((tmp_path / "a/component.0").read_bytes())
    before = outside.read_bytes()
    left.unlink(missing_ok=True)
    {
        "link": lambda: left.symlink_to(outside),
        "hard link": lambda: left.hardlink_to(outside),
        "FIFO": lambda: os.mkfifo(left),
        "directory": left.mkdir,
    }[kind]()
    with _limited():
        try:
            _write_array(world, tmp_path)
        except outcore.OutcoreError as error:
            assert name in str(error)
        else:
            assert name != "component.0"
            assert _read_array(world, tmp_path)[1].min() == 7
    assert outside.read_bytes() == before


def test_what_only_looks_like_a_file_of_an_array_is_not_deleted(world: World, tmp_path: Path) -> None:
    (tmp_path / "table.tex").write_text("mine")
    with pytest.raises(outcore.OutcoreError, match=r"table\.tex"):
        outcore.DiskArray(world, (3,), path=tmp_path, overwrite=True)
    assert (tmp_path / "table.tex").read_text() == "mine"


def test_metadata_that_are_no_json_are_an_error_of_ours(world: World, tmp_path: Path) -> None:
    for text in ('"\n x', "[" * 100_000, "9" * 5000):
        array = outcore.DiskArray(world, (3,), path=tmp_path / "a", overwrite=True)
        in_gate("flush", array._native.flush, lambda text=text: text)
        with pytest.raises(outcore.OutcoreError, match="metadata"):
            _ = array.metadata
        array.close()


def test_a_checkpoint_of_the_format_before_is_refused_by_name(world: World, tmp_path: Path) -> None:
    checkpoint.save(world, tmp_path / "c", {"a": np.ones(3)})
    with outcore.DiskArray.open(world, tmp_path / "c", read_only=False) as root:
        facts = root.metadata
        del facts["format"]
        root.flush(facts)
    with pytest.raises(outcore.OutcoreError, match="of format 1; this program reads format 2"):
        checkpoint.load(world, tmp_path / "c")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("arrays", []),
        ("arrays", {"../x": {}}),
        ("arrays", {"a": {"kind": "numpy"}}),
        ("generation", -1),
        ("generation", "2/../../x"),
        ("more", 1),
    ],
)
def test_a_checkpoint_whose_facts_cannot_be_is_damaged(
    world: World, tmp_path: Path, field: str, value: Any
) -> None:
    checkpoint.save(world, tmp_path / "c", {"a": np.ones(3)})
    with outcore.DiskArray.open(world, tmp_path / "c", read_only=False) as root:
        root.flush({**root.metadata, field: value})
    with pytest.raises(outcore.OutcoreError, match="damaged"):
        checkpoint.load(world, tmp_path / "c")
    assert inspect_command.verify(tmp_path / "c") == 1
