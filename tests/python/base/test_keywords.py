"""Names of arguments that a function does not have."""

from dataclasses import dataclass

import pytest

from outcore.base import keywords


@dataclass
class Settings:
    max_cycle: int = 50
    damping: float = 0.0


class Method:
    @keywords.checked(Settings)
    def __init__(
        self, mol: str, *, memory: str | None = None, scratch: str | None = None, **settings: object
    ):
        self.mol, self.memory, self.scratch, self.settings = mol, memory, scratch, settings


def test_known_names_get_through():
    made = Method("water", memory="1GB", damping=0.2)
    assert (made.mol, made.memory, made.settings) == ("water", "1GB", {"damping": 0.2})


@pytest.mark.parametrize(
    "wrong, meant",
    [
        ("memry", "memory"),
        ("max_cycles", "max_cycle"),
        ("max_memory", "memory"),
        ("memory_bytes", "memory"),
        ("scratch_dir", "scratch"),
        ("directory", "scratch"),
    ],
)
def test_a_wrong_name_gets_the_right_one(wrong, meant):
    with pytest.raises(TypeError, match=f"Method has no argument '{wrong}': did you mean '{meant}'\\?"):
        Method("water", **{wrong: 1})


def test_without_a_close_name_all_are_listed():
    with pytest.raises(TypeError, match=r"'x9': there are damping, max_cycle, memory, mol, scratch$"):
        Method("water", x9=1)


def test_another_word_counts_only_where_its_meaning_is_there():
    assert keywords.hint("max_memory", ["threads", "storage"]) == "there are storage, threads"
