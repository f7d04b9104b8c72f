"""An option that several methods share has the same type and the same --help text in each."""

from importlib import import_module
from typing import Any

import pytest
import typer

from outcore.base.errors import OutcoreError
from outcore.cli.main import SUBCOMMANDS, run

pytest.importorskip("pyscf")

METHODS = ("scf", "ri-scf", "rimp2", "fci", "mrci", "ccsd", "eom", "casscf")
OF_ALL = {"--checkpoint", "--restart", "--memory", "--scratch", "--estimate", "--json", "--storage"}
OF_ITS_OWN = {
    "--auxbasis",  # of the SCF in one command, of MP2 in the other, as the help says
    "--storage",  # each method has its own text
}


OF_CCSD = {
    "--level-shift",
    "--damping",
}  # of its amplitudes; of its SCF they are --scf-level-shift, --scf-damping
OF_EOM = OF_CCSD | {"--states"}  # a number of states, all of one kind; others list irreps and spins
OF_CASSCF = {
    "--active",
    "--cas",
    "--irrep",
    "--integrals",
    "--frozen",
    "--frozen-virtual",
}  # a list alone; no FCIDUMP file; exact or fitted integrals; numbers alone, for NEVPT2
OF_MRCI = {
    "--active",
    "--irrep",
    "--error-bound",
}  # orbitals that references choose; no number of an irrep in an FCIDUMP file; beside --residual, not in its place


def options(name: str) -> dict[str, tuple[Any, ...]]:
    """Type and help of each option of a command."""
    entry, application = SUBCOMMANDS[name], typer.Typer(add_completion=False)
    application.command(name)(getattr(import_module(entry.module), entry.function))
    command = typer.main.get_command(application)
    return {
        spelled: (
            type(each.type).__name__,
            each.type.name,
            each.is_flag,
            each.nargs,
            each.multiple,
            each.metavar,
            each.help,
        )
        for each in command.params
        for spelled in each.opts
        if spelled.startswith("--")
    }


def test_every_method_has_the_options_of_all():
    for name in METHODS:
        assert options(name).keys() >= OF_ALL, name


def test_an_option_of_several_methods_means_the_same_in_each():
    seen: dict[str, tuple[str, tuple[Any, ...]]] = {}
    for name in METHODS:
        for option, facts in options(name).items():
            first, expected = seen.setdefault(option, (name, facts))
            own = option in OF_ITS_OWN | {
                "mrci": OF_MRCI,
                "casscf": OF_CASSCF,
                "ccsd": OF_CCSD,
                "eom": OF_EOM,
            }.get(name, set())
            assert own or facts == expected, f"{option} of {name} and {first}"
    assert len(seen) > len(OF_ALL)


@pytest.mark.parametrize(
    "name, words",
    {
        "scf": ("disk", "mixed", "direct", "auto"),
        "ri-scf": ("auto", "disk"),
        "rimp2": ("auto", "disk"),
        "fci": ("disk", "mixed", "direct", "auto"),
        "casscf": ("disk", "mixed", "direct", "auto"),
        "mrci": ("disk", "mixed", "direct", "auto"),
        "ccsd": ("auto", "disk"),
        "eom": ("auto", "disk"),
    }.items(),
)
def test_help_lists_the_storages_that_a_command_has_and_others_are_refused(name, words, tmp_path):
    *_, text = options(name)["--storage"]
    assert all(
        (f"'{word}'" in text) == (word in words) for word in ("auto", "memory", "disk", "mixed", "direct")
    )
    water = tmp_path / "water.xyz"
    water.write_text("1\n\nHe 0 0 0\n")
    more = ["--cas", "2,1"] if name in ("mrci", "casscf") else []
    with pytest.raises(OutcoreError, match=f"'memory': .* does not have it; .* has {', '.join(words)}"):
        run([name, str(water), "--basis", "sto-3g", "--storage", "memory", *more])
