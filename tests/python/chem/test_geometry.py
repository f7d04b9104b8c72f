"""XYZ files: contents, messages about them, and refusals with line and reason."""

from __future__ import annotations

import pytest

pytest.importorskip("pyscf")

from outcore.base.errors import OutcoreError
from outcore.chem import geometry, molecule

ATOMS = "O 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n"
WATER = "3\nwater\n" + ATOMS
PLACES = [("O", (0, 0, 0.1173)), ("H", (0, 0.7572, -0.4692)), ("H", (0, -0.7572, -0.4692))]


def commented(comment: str, atoms: str = ATOMS) -> str:
    return f"{atoms.count(chr(10))}\n{comment}\n{atoms}"


@pytest.fixture
def read(tmp_path):
    def call(content: str | bytes, **options):
        path = tmp_path / "molecule.xyz"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return geometry.read(path, **options)

    return call


@pytest.fixture
def build(tmp_path):
    """The molecule, and the messages about it."""

    def call(content: str, **options):
        path, said = tmp_path / "molecule.xyz", []
        path.write_text(content)
        return molecule.build(path, "sto-3g", say=said.append, **options), "\n".join(said)

    return call


def places(found: geometry.Geometry):
    return [(atom.symbol, atom.position) for atom in found.atoms]


@pytest.mark.parametrize(
    "content",
    [
        WATER,
        WATER.encode("utf-8-sig"),
        WATER.encode("utf-16"),
        b"3\nr\xe9sum\xe9 \x85 \x0c of a run\n" + ATOMS.encode(),
        commented("\u2028 separators \x1c \x0c \x0b"),
        WATER.replace("\n", "\r\n"),
        WATER.replace("\n", "\r"),
        WATER.replace(" ", "\t "),
        WATER.replace("O 0", "\x0cO 0"),
        WATER + "\n \n\t\n",
        WATER.rstrip("\n"),
        WATER.replace("0.1173", "1.173D-01").replace("0.7572", "7.572d-1"),
        WATER.replace("O", "8").replace("H", "1"),
        WATER.replace("O", "o"),
        WATER.replace("O", "O1").replace("H", "H@2"),
        WATER.replace("H", "H_b"),
        commented("Properties=species:S:1:pos:R:3"),
        commented('properties="species:S:1:pos:R:3" pbc="F F F" Lattice="9 0 0 0 9 0 0 0 9"'),
        commented(
            "Properties=id:I:1:Z:I:1:move:L:1:pos:R:3:forces:R:3",
            "1 8 T 0 0 0.1173 1 2 3\n2 1 F 0 0.7572 -0.4692 4 5 6\n3 1 F 0 -0.7572 -0.4692 7 8 9\n",
        ),
        commented(
            "Properties=pos:R:3:species:S:1",
            "0 0 0.1173 O\n0 0.7572 -0.4692 H\n0 -0.7572 -0.4692 H\n",
        ),
        commented(
            "Properties=species:S:1:Z:I:1:pos:R:3",
            "O 8 0 0 0.1173\nH 1 0 0.7572 -0.4692\nH 1 0 -0.7572 -0.4692\n",
        ),
    ],
)
def test_what_means_the_same_is_read_the_same(read, content):
    found = read(content)
    assert places(found) == PLACES and found.unit == "angstrom" and found.notes == []


@pytest.mark.parametrize("name", ["H1", "H@b", "H#4", "D", "2H", "H_a1", "T"])
def test_isotopes_and_labels_are_the_element(read, name):
    assert places(read(WATER.replace("H", name))) == PLACES


@pytest.mark.parametrize("name", ["D", "2H", "3H"])
def test_isotopes_are_told(read, name):
    assert name in "".join(read(WATER.replace("H", name)).notes)


@pytest.mark.parametrize(
    "name", ["ghost-O", "GHOST-O1", "Ghost:O", "ghostO", "X-O", "x-o2", "@O", "Gh(O)", "O-Bq", "BqO", "O:"]
)
def test_ghost_atoms_have_functions_alone(build, name):
    mol, said = build(commented("", ATOMS + f"{name} 0 0 3\n"))
    assert (mol.nelectron, mol.nao, mol.atom_charge(3)) == (10, 12, 0) and "ghost" in said


@pytest.mark.parametrize("name", ["X", "x1", "Du", "Bq", "0"])
def test_dummy_atoms_are_left_out_and_told(build, name):
    mol, said = build(commented("", f"{name} 0 0 3\n" + ATOMS))
    assert mol.natm == 3 and "dummy" in said and "line 3" in said


@pytest.mark.parametrize("content", [commented("units=bohr"), "3 au" + WATER[1:], "3 bohr" + WATER[1:]])
def test_bohr_that_the_file_says_is_taken_and_told(build, content):
    mol, said = build(content)
    assert mol.atom_coords()[0][2] == pytest.approx(0.1173, abs=1e-12) and "bohr" in said


def test_the_unit_can_be_given(build):
    mol, _ = build(WATER, unit="bohr")
    assert mol.atom_coords()[0][2] == pytest.approx(0.1173, abs=1e-12)


@pytest.mark.parametrize(
    ("comment", "charge", "spin"),
    [
        ("charge=1", 1, 1),
        ('total_charge="-1" multiplicity=2', -1, 1),
        ("Charge: 2, Multiplicity 3", 2, 2),
        ("mult=3", 0, 2),
        ("spin=0", 0, 0),
        ('{"charge": "-2", "multiplicity": 3}', -2, 2),
        ("charge 2-", -2, 0),
        ("CSD_code = WIXKOE | q = 1 | S = 0 | E = -1.5", 1, 1),
        ("a singlet, q=0.5", 0, 0),
        ("0 1", 0, 0),
        ("energy=-76.0 nuclear_charge=8 E = -76.1 a.u.", 0, 0),
        ("Mulliken charge: -1", 0, 0),
        ('name="a \\"b\\" Lattice=c" charge=1 pbc="F F F"', 1, 1),
    ],
)
def test_charge_and_spin_of_the_comment_are_taken(build, comment, charge, spin):
    mol, said = build(commented(comment))
    assert (mol.charge, mol.spin) == (charge, spin)
    assert ("charge" in said) == (charge != 0)


def test_options_that_say_the_same_as_the_comment_are_taken(build):
    mol, _ = build(commented("charge=1 mult=2"), charge=1, spin=1)
    assert (mol.charge, mol.spin) == (1, 1)


@pytest.mark.parametrize("comment", ["1 2 in bohr", "radical cation, a triplet, in bohr", "spin=2 bohr"])
def test_options_settle_what_a_comment_leaves_open(build, comment):
    mol, _ = build(commented(comment), charge=1, spin=1, unit="angstrom")
    assert (mol.charge, mol.spin) == (1, 1)


@pytest.mark.parametrize(
    ("comment", "options", "text"),
    [
        ("charge=1", {"charge": 0}, "says charge 1, --charge says 0"),
        ("multiplicity=1", {"spin": 2}, "--spin says 2"),
        ("multiplicity=2", {}, "10 electrons cannot have 1 unpaired ones"),
        ("charge=0.5", {}, "no integer"),
        ("charge=1 charge=2", {}, "charge 1 and 2"),
        ("mult=1 unpaired=2", {}, "contradict each other"),
        ("-1 1 hydroxide", {}, "give --charge"),
        ("0 3", {}, "give --spin"),
        ("the triplet", {}, "give --spin"),
        ("its radical cation", {}, "give --charge"),
        ("charge=None", {}, "charge='None' is not understood"),
        ("multiplicity=\uff11", {}, "is not understood"),
        ("charge=1e0", {}, "is not understood"),
        ("spin=1", {}, "give --spin"),
        ("coordinates in bohr", {}, "give --unit"),
        ("units=nm", {}, "neither angstrom nor bohr"),
        ("units=bohr", {"unit": "angstrom"}, "--unit says angstrom"),
        ("", {"unit": "nm"}, "neither angstrom nor bohr"),
        ('Lattice="9 0 0 0 9 0 0 0 9"', {}, "periodic"),
        ('pbc="F F T"', {}, "periodic"),
        ("Properties=species:S:1:pos:R:2", {}, "no positions"),
        ("Properties=pos:R:3", {}, "no elements"),
        ("Properties=species:S:pos:R:3", {}, "not a list"),
        ("Properties=species:S:1:pos:R:3:pos:R:3", {}, "twice"),
        ("Properties=species:S:1:pos:R:3:mass:R:1", {}, "line 3 has 4 columns"),
    ],
)
def test_what_contradicts_itself_or_has_two_readings_is_refused(build, comment, options, text):
    with pytest.raises(OutcoreError) as caught:
        build(commented(comment), **options)
    assert text in str(caught.value)


def test_columns_of_charges_are_no_charge_of_the_molecule(build):
    ions = commented(
        "Properties=species:S:1:pos:R:3:initial_charges:R:1",
        "O 0 0 0.1 0.4\nH 0 0.7 -0.4 0.3\nH 0 -0.7 -0.4 0.3\n",
    )
    with pytest.raises(OutcoreError, match="add up to 1"):
        build(ions)
    assert build(ions, charge=1)[0].charge == 1


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (WATER.replace("0.1173", "nan"), "line 3 is not"),
        (WATER.replace("0.1173", "-inf"), "line 3 is not"),
        (WATER.replace("0.1173", "1e999"), "line 3 is not"),
        (WATER.replace("0.1173", "1_0"), "line 3 is not"),
        (WATER.replace("0.1173", "0,1173"), "line 3 is not"),
        (WATER.replace("0.1173", "********"), "line 3 is not"),
        (WATER.replace("0.1173", "1e7"), "line 3 has a coordinate beyond"),
        (WATER.replace("0.1173", "\u0660.1173"), "ARABIC-INDIC DIGIT ZERO"),
        (WATER.replace("-0.7572", "\u22120.7572"), "line 5 is not"),
        (WATER.replace("H 0", "H\u00a00"), "NO-BREAK SPACE"),
        ("\uff13" + WATER[1:], "FULLWIDTH DIGIT THREE"),
        ("+3" + WATER[1:], "line 1 must be the number of atoms"),
        ("3.0" + WATER[1:], "line 1 must be the number of atoms"),
        ("\n" + WATER, "line 1 must be the number of atoms"),
        ("99999999999" + WATER[1:], "line 1 must be the number of atoms"),
        ("4" + WATER[1:], "line 1 says 4 atoms, but only 3"),
        ("2" + WATER[1:], "line 5 follows the atoms"),
        ("3\n" + ATOMS, "looks like an atom"),
        (WATER.replace("\nH", "\n\nH", 1), "line 4 is blank"),
        (WATER.replace("O", "Zz"), "line 3 names an unknown element: 'Zz'"),
        (WATER.replace("O", "\u041e"), "CYRILLIC CAPITAL LETTER O"),
        (WATER.replace("O", "Fe2+"), "unknown element"),
        (WATER.replace("O", "ghost"), "unknown element"),
        (WATER.replace("O", "400O"), "unknown element"),
        (WATER.replace("O", "119"), "atomic number 119"),
        (WATER.replace("O", "-8"), "atomic number -8"),
        (WATER.replace("O 0", "O 8 0").replace("H 0", "H 1 0"), "column 2 has integers"),
        (WATER.replace("O 0 0", "O 8.0 0 0").replace("H 0", "H 1.0 0"), "column 2 has integers"),
        (WATER.replace("O 0", "1 8 0").replace("H 0", "2 1 0"), "it is not clear which are the coordinates"),
        (WATER.replace("0.1173", "0.1173 CA"), "line 3 has 'CA' after the coordinates"),
        (
            commented("Properties=species:S:1:Z:I:1:pos:R:3", "O 7 0 0 0\nH 1 0 0 1\n"),
            "line 3 names 'O' with the atomic number 7",
        ),
        ("2\n\nghost-H 0 0 0\nX 0 0 1\n", "it has no atoms"),
        (b"\x7fELF\x00\x00", "not a text file"),
        (b"\xff\xfe3", "not a text file"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(read, content, text):
    with pytest.raises(OutcoreError) as caught:
        read(content)
    assert text in str(caught.value) and "molecule.xyz" in str(caught.value)


def test_columns_after_the_coordinates_are_told(read):
    found = read(WATER.replace("0.1173", "0.1173 15.999").replace("-0.4692", "-0.4692 1.008"))
    assert places(found) == PLACES and "column 5 is not used" in found.notes[0]


def test_one_frame_of_several_is_chosen_by_its_number(read):
    second = WATER.replace("0.1173", "0.2")
    trajectory = WATER + "\n" + second + WATER.replace("0.1173", "0.3")
    with pytest.raises(OutcoreError, match=r"3 frames, the second from line 7 on: .*--frame"):
        read(trajectory)
    found = read(trajectory, frame=2)
    assert found.atoms[0].position[2] == 0.2 and "lines 7 to 11" in found.notes[0]
    assert read(trajectory, frame=-1).atoms[0].position[2] == 0.3
    for frame in (0, 4, -4):
        with pytest.raises(OutcoreError, match=f"no --frame {frame}"):
            read(trajectory, frame=frame)


@pytest.mark.parametrize(
    ("atoms", "text"),
    [
        ("H 0 0 0\nH 0 0 0\n", "atoms 1 and 2 (H and H, lines 3 and 4) are at the same place"),
        ("H 0 0 0\nH 0 0 1\nH 0 0 1e-9\n", "atoms 1 and 3"),
        ("H 0 0 0\nH 0 0 0.01\n", "nearly at the same place"),
        ("O 0 0 0\nghost-O 0 0 1e-4\n", "O and GHOST-O"),
        ("O 0 0 0\nH 0 0 0.0958\n", "in another unit"),
    ],
)
def test_atoms_at_one_place_are_refused(read, atoms, text):
    with pytest.raises(OutcoreError) as caught:
        read(commented("", atoms))
    assert text in str(caught.value)


def test_short_distances_are_told(read):
    assert "only 0.300 Angstrom apart" in "".join(read(commented("", "H 0 0 0\nH 0 0 0.3\n")).notes)
