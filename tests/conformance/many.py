"""Random cases of a test, by numbers."""

from __future__ import annotations

from typing import Any

import pytest


def many(numbers: range, few: int) -> list[Any]:
    """Parameters of a test: those that are `few` above the first one, or more, are long."""
    long = pytest.mark.long
    return [pytest.param(each, marks=long if each >= numbers.start + few else ()) for each in numbers]
