"""`outcore inspect` and `outcore verify`."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import outcore
from outcore import DiskArray, OutcoreError, checkpoint
from outcore.cli import main as cli


@pytest.fixture
def array(tmp_path):
    path = tmp_path / "array"
    options = {"path": path, "chunk": (16, 16), "metadata": {"what": "t2"}}
    with outcore.World(scratch=tmp_path) as world, DiskArray(world, (64, 64), **options) as disk:
        disk.write_all_async(np.arange(4096.0).reshape(64, 64))
    return path


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "checkpoint"
    with outcore.World(scratch=tmp_path) as world:
        checkpoint.save(world, path, {"a": np.arange(1000.0), "b": np.ones((3, 3), np.int32)}, {"cycle": 7})
    return path


def flip(path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 16
    path.write_bytes(data)


def test_an_array_is_described(array, capsys):
    assert cli.run(["inspect", str(array)]) == 0
    text = capsys.readouterr().out
    for part in ("disk array", "[64, 64]", "float64", "[16, 16]", '{"what": "t2"}'):
        assert part in text


def test_a_checkpoint_is_described_for_programs(saved, capsys):
    assert cli.run(["inspect", "--json", str(saved)]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["kind"] == "checkpoint"
    assert facts["meta"] == {"cycle": 7}
    assert facts["arrays"]["b"]["dtype"] == "int32"
    assert facts["arrays"]["a"]["shape"] == "[1000]"


def test_what_is_no_array_is_an_error(tmp_path):
    with pytest.raises(OutcoreError, match=str(tmp_path)):
        cli.run(["inspect", str(tmp_path)])


def test_what_is_whole_is_whole(array, saved, capsys):
    assert cli.run(["verify", str(array)]) == 0
    assert cli.run(["verify", str(saved)]) == 0
    assert capsys.readouterr().out.count("all whole") == 2


def test_every_damaged_chunk_is_named(array, capsys):
    flip(array / "component.0", 3 * 4096 + 5)
    flip(array / "component.0", 9 * 4096 + 7)
    assert cli.run(["verify", str(array)]) == 1
    text = capsys.readouterr().out
    assert "chunk 3 " in text
    assert "chunk 9 " in text
    assert "2 damaged places" in text


@pytest.mark.parametrize("name", ["manifest", "table.0.1"])
def test_a_flipped_bit_in_the_metadata_is_found(array, name, capsys):
    size = (array / name).stat().st_size
    for offset in range(0, size, max(1, size // 37)):
        flip(array / name, offset)
        assert cli.run(["verify", str(array)]) == 1
        assert name in capsys.readouterr().out
        flip(array / name, offset)
    assert cli.run(["verify", str(array)]) == 0


def test_damage_within_a_checkpoint_is_named(saved, capsys):
    flip(saved / "arrays.1" / "a" / "component.0", 100)
    assert cli.run(["verify", str(saved)]) == 1
    assert "arrays.1/a/component.0" in capsys.readouterr().out


def test_arrays_of_a_checkpoint_that_are_missing_are_named_and_the_rest_is_checked(saved, capsys):
    (saved / "arrays.1" / "a" / "manifest").unlink()
    flip(saved / "arrays.1" / "b" / "component.0", 3)
    assert cli.run(["verify", str(saved)]) == 1
    said = capsys.readouterr().out
    assert "arrays.1/a: there is no manifest" in said
    assert "arrays.1/b/component.0" in said
    shutil.rmtree(saved / "arrays.1" / "a")
    assert cli.run(["verify", str(saved)]) == 1
    assert "arrays.1/a: missing" in capsys.readouterr().out


def test_a_truncated_component_is_found(array, capsys):
    path = array / "component.0"
    path.write_bytes(path.read_bytes()[:-4096])
    assert cli.run(["verify", str(array)]) == 1
    assert "component.0" in capsys.readouterr().out


def test_a_damaged_array_is_refused(array, tmp_path):
    flip(array / "manifest", 60)
    with outcore.World(scratch=tmp_path) as world, pytest.raises(OutcoreError, match="manifest"):
        DiskArray.open(world, array)


def test_parts_of_other_nodes_are_counted(tmp_path, capsys):
    path = tmp_path / "array"
    with outcore.World(scratch=tmp_path) as world:
        DiskArray(world, 10, path=path, placement="local").close()
    assert cli.run(["verify", str(path)]) == 0
    assert "not here" not in capsys.readouterr().out
    (path / "component.0").unlink()
    assert cli.run(["verify", str(path)]) == 0
    assert "1 parts are not here" in capsys.readouterr().out


# ---- what methods keep


@pytest.fixture
def kept(tmp_path, array, saved):
    """A checkpoint with stages, as of a method."""
    folder = tmp_path / "kept"
    folder.mkdir()
    array.rename(folder / "pairs")
    saved.rename(folder / "orbitals")
    (folder / "notes").mkdir()
    return folder


def test_a_directory_of_a_method_is_described(kept, capsys):
    assert cli.run(["inspect", str(kept)]) == 0
    text = capsys.readouterr().out
    assert "pairs: disk array of t2 (float64 [64, 64])" in text
    assert "orbitals: checkpoint (a, b)" in text
    assert cli.run(["inspect", "--json", str(kept)]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert list(facts["parts"]) == ["orbitals", "pairs"]


def test_damage_within_a_directory_of_a_method_is_named(kept, capsys):
    assert cli.run(["verify", str(kept)]) == 0
    assert "4 arrays, all whole" in capsys.readouterr().out
    flip(kept / "pairs" / "component.0", 3 * 4096 + 5)
    flip(kept / "orbitals" / "arrays.1" / "a" / "component.0", 100)
    assert cli.run(["verify", str(kept)]) == 1
    text = capsys.readouterr().out
    assert "pairs/component.0" in text
    assert "orbitals/arrays.1/a/component.0" in text
    (kept / "pairs" / "manifest").unlink()
    assert cli.run(["verify", str(kept)]) == 1
    assert "pairs: there is no manifest" in capsys.readouterr().out


def test_damage_of_kept_integrals_is_named(tmp_path, capsys):
    geometry, folder = tmp_path / "h2.xyz", tmp_path / "kept"
    geometry.write_text("2\n\nH 0 0 0\nH 0 0 0.74\n")
    folder.mkdir()
    options = ["--basis", "sto-3g", "--storage", "disk", "--keep-integrals", str(folder), "--threads", "1"]
    assert cli.run(["scf", str(geometry), *options]) == 0
    assert cli.run(["inspect", str(folder)]) == 0
    assert "integrals: checkpoint of two-electron integrals" in capsys.readouterr().out
    assert cli.run(["verify", str(folder)]) == 0
    records = next(folder.glob("integrals-*.0"))
    flip(records, 20)
    assert cli.run(["verify", str(folder)]) == 1
    assert f"{records}: the record of" in capsys.readouterr().out
    records.unlink()
    assert cli.run(["verify", str(folder)]) == 1
    assert records.name in capsys.readouterr().out
