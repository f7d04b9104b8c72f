"""Arrays that come from files and go to files, that store fewer digits than they have, of all types of elements, in
contractions and programs."""

import numpy as np
import pytest
from conformance.random_arrays import elements, holding

import outcore
from outcore import Array, Program, Tiling

# Kinds of arrays and elements; boxes dealt to more processes are in test_einsum.py and test_program.py.
pytestmark = pytest.mark.processes(2)

AXIS = Tiling(12, tile=5)
DTYPES = ["float32", "float64", "complex64", "complex128"]


@pytest.fixture(params=["hosts", "processes"])
def world(request, comm, shared_tmp_path):
    with outcore.World(comm, scratch=shared_tmp_path, memory="100MB", nodes=request.param) as made:
        yield made


def values(seed, dtype="float64"):
    random = np.random.default_rng(seed)
    found = random.standard_normal((12, 12))
    return (found + 1j * random.standard_normal((12, 12)) if np.dtype(dtype).kind == "c" else found).astype(
        dtype
    )


def contracted(world, a, b, way, **options):
    """a b by einsum, or by a program."""
    if way == "einsum":
        return outcore.einsum("ik,kj->ij", a, b, world=world, memory="8kB", **options)
    with Program(world, memory="8kB") as p:
        out = p.output(outcore.einsum("ik,kj->ij", p.input(a), p.input(b), **options))
    p.run()
    return out.result


def close(world, *arrays):
    world.barrier()
    for each in arrays:
        if not isinstance(each, np.ndarray):
            each.close()


@pytest.mark.parametrize("way", ["einsum", "program"])
@pytest.mark.parametrize("kind", ["hdf5", "zarr"])
def test_from_files_through_a_contraction_and_back(world, paths, kind, way):
    x, y = values(1), values(2)
    x = x + x.T
    places = [(paths.new(), "x") if kind == "hdf5" else (paths.new(),) for _ in range(3)]
    for place, each, symmetry in zip(places, (x, y), ("symmetric(0,1)", None), strict=False):
        with Array.from_numpy(world, each, [AXIS, AXIS], symmetry=symmetry) as array:
            getattr(array, f"to_{kind}")(*place)
    read = getattr(Array, f"from_{kind}")
    a, b = read(world, *places[0], where="disk"), read(world, *places[1], where="global")
    assert a.layout.symmetry
    out = Array(world, [AXIS, AXIS], where="disk")
    if way == "einsum":
        outcore.einsum("ik,kj->ij", a, b, out=out, memory="8kB")
    else:
        with Program(world, memory="8kB") as p:
            outcore.einsum("ik,kj->ij", p.input(a), p.input(b), out=p.input(out))
        p.run()
    getattr(out, f"to_{kind}")(*places[2])
    with read(world, *places[2]) as found:
        np.testing.assert_allclose(elements(world, found), x @ y, rtol=1e-12, atol=1e-12)
    close(world, out, b, a)


@pytest.mark.parametrize("way", ["einsum", "program"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_single_precision_in_store_keeps_its_bound(world, dtype, way):
    """For operands and the result: each element differs by at most the bound of the arrays."""
    x, y = values(3, dtype), values(4, dtype)
    narrow = {"float64": "float32", "complex128": "complex64"}[dtype]
    a = Array.from_numpy(world, x, [AXIS, AXIS], "disk", store_dtype=narrow)
    bound = a.storage_error
    assert 0 < bound.relative < 1e-7
    assert a.dtype == dtype
    off = np.abs(a.to_numpy() - x)
    parts = 2 if dtype == "complex128" else 1  # each has the bound
    assert 0 < off.max() <= parts * (bound.relative * np.abs(x).max() + bound.absolute)
    found = contracted(world, a, y, way)
    assert found.dtype == dtype
    limit = parts * bound.relative * (np.abs(x) @ np.abs(y)) + 1e-13
    error = np.abs(elements(world, found) - x @ y)
    assert (error <= limit).all()
    assert error.max() > 1e-12  # fewer digits were stored, indeed
    out = Array(world, [AXIS, AXIS], dtype, "disk", store_dtype=narrow)
    outcore.einsum("ik,kj->ij", x, y, out=out, memory="8kB")
    outcore.einsum("ik,kj->ij", x, y, out=out, accumulate=True, memory="8kB")
    most = 2 * 12 + 1  # roundings: inner indices may be dealt out one by one, and each part is added
    limit = most * parts * bound.relative * 2 * (np.abs(x) @ np.abs(y)) + 1e-13
    assert (np.abs(elements(world, out) - 2 * (x @ y)) <= limit).all()
    close(world, out, found, a)


@pytest.mark.parametrize("way", ["einsum", "program"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_all_types(world, dtype, way):
    x, y = values(5, dtype), values(6, dtype)
    a, b = holding(world, "array: disk", x), holding(world, "array: global", y)
    found = contracted(world, a, b, way, scale=0.5)
    assert found.dtype == dtype
    eps = float(np.finfo(dtype).eps)
    exact = 0.5 * (x.astype("complex128") @ y.astype("complex128"))
    assert np.abs(elements(world, found) - exact).max() <= 100 * eps
    close(world, found, b, a)


KINDS = ["numpy", "node", "global", "disk", "sparse", "array: process", "array: node", "array: disk"]


@pytest.mark.parametrize("kind", KINDS)
def test_operands_of_all_kinds_and_types_mix(world, kind):
    for number, dtype in enumerate(DTYPES):
        x, y = values(7, dtype), values(8, DTYPES[-1 - number])
        for other in ("numpy", "array: global"):
            a = holding(world, kind, x)
            b = holding(world, other, y)
            found = contracted(world, a, b, "einsum")
            assert found.dtype == np.result_type(x, y)
            np.testing.assert_allclose(elements(world, found), x.astype(complex) @ y, rtol=1e-4, atol=1e-4)
            close(world, found, b, a)
