"""Notebook output of arrays, plans and runs."""

import numpy as np
import pytest

import outcore


@pytest.fixture
def world(tmp_path):
    with outcore.World(memory="200MB", scratch=str(tmp_path)) as made:
        yield made


def test_disk_array(world, tmp_path):
    with outcore.DiskArray(world, (30, 40), path=tmp_path / "<a>") as array:
        shown = array._repr_html_()
        assert "30 x 40" in shown and "float64" in shown and "9.60 kB" in shown and "&lt;a&gt;" in shown
    assert "closed" in array._repr_html_()


@pytest.mark.parametrize("kind", [outcore.GlobalArray, outcore.NodeArray])
def test_arrays_in_memory(world, kind):
    with kind(world, (3, 4), "float32") as array:
        shown = array._repr_html_()
        assert "3 x 4" in shown and "float32" in shown and "48 bytes" in shown and "memory" in shown
    assert "closed" in array._repr_html_()


def test_block_sparse_array(world):
    with outcore.BlockSparseArray(world, [[0, 2, 4], [0, 2, 4]], [(0, 0), (1, 1)]) as array:
        assert "4 x 4" in array._repr_html_()
    assert "closed" in array._repr_html_()


@pytest.mark.parametrize("where", ["process", "global", "disk"])
def test_extended_array(world, where):
    with outcore.Array.from_numpy(world, np.ones((6, 5)), where=where) as array:
        shown = array._repr_html_()
        assert "6 x 5" in shown and "240 bytes" in shown and where in shown
    assert "6 x 5" in array._repr_html_()


def test_plan_and_run_of_einsum(world):
    with outcore.Array.from_numpy(world, np.ones((20, 30)), where="disk") as array:
        plan = outcore.einsum.plan("ij,kj->ik", array, np.ones((9, 30)), memory="4MB")
        shown = plan._repr_html_()
        assert "ij,kj-&gt;ik" in shown and "4.00 MB of memory" in shown
        result, counted = outcore.einsum("ij,kj->ik", array, np.ones((9, 30)), memory="4MB", report=True)
        result.close()
        moved = counted._repr_html_()
        assert "read from disk" in moved and moved.count("4.80 kB") == 2  # predicted, and actual


def test_plan_and_run_of_a_program(world):
    with outcore.Program(world, memory="4MB") as p:
        x = p.input(np.ones((8, 8)), "x")
        energy = p.array((), name="energy")
        outcore.einsum("ij,ij->", x, x, out=energy)
    plan = p.plan()
    assert "energy = ij,ij-&gt; (x, x)" in plan._repr_html_()
    report = p.run(plan=plan)
    assert "Run of a program" in report._repr_html_() and p.value(energy) == 64


def test_progress_in_a_notebook(world, monkeypatch):
    from outcore.tensor.run import progress

    shown = []
    monkeypatch.setattr(progress, "in_notebook", lambda: True)
    monkeypatch.setattr(progress.Bar, "show", lambda bar, *what: shown.append(what))
    outcore.einsum("ij,kj->ik", np.ones((20, 30)), np.ones((9, 30)), world=world, progress=True)
    assert shown[-1][1] == 1 and shown[-1][2] == "0 s left"
