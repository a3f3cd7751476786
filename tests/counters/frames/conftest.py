"""Frames of both engines with the same rows."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pytest

Make = Callable[[dict[str, list[Any]]], Any]
ENGINES: dict[str, Make] = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.fixture(params=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def make(engine: str) -> Make:
    """Return a maker of frames of one engine, from lists by column."""
    return ENGINES[engine]


@pytest.fixture
def flights() -> dict[str, list[Any]]:
    """Return 60 rows of three carriers, out of order, with one row at each time."""
    days = [(7 * row) % 60 for row in range(60)]
    return {
        "day": days,
        "carrier": [["AA", "UA", "DL"][day % 3] for day in days],
        "late": [int(day % 5 < 2) for day in days],
        "tail": [f"N{day % 40}" for day in days],
    }
