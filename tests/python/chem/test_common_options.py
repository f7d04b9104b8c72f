"""An option that several methods have is the same in each: its type, and what --help says of it."""

from importlib import import_module
from typing import Any

import pytest
import typer

from outcore.cli.main import SUBCOMMANDS

pytest.importorskip("pyscf")

METHODS = ("scf", "ri-scf", "rimp2", "fci", "mrci", "ccsd")
OF_ALL = {"--checkpoint", "--restart", "--memory", "--scratch", "--estimate", "--json", "--storage"}
OF_ITS_OWN = {"--auxbasis"}  # of the SCF in one command, of MP2 in the other, as the help says


OF_MRCI = {"--active", "--irrep"}  # orbitals that references choose; no number of an irrep in an FCIDUMP file


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
            own = option in OF_ITS_OWN or (name == "mrci" and option in OF_MRCI)
            assert own or facts == expected, f"{option} of {name} and {first}"
    assert len(seen) > len(OF_ALL)
