"""LazyFrames of polars: read when collected, by any engine, with the values of the eager frame."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from trilift import ParameterError, ReplayError
from trilift.counters.frames import PrivateCumsum, private_cumsum

OPTIONS: dict[str, Any] = {"by": "carrier", "groups": ["AA", "DL", "UA"], "order": "day", "epsilon": 1}


@pytest.fixture
def table(flights: dict[str, list[Any]], tmp_path: Path) -> Path:
    path = tmp_path / "flights.csv"
    pl.DataFrame(flights).write_csv(path)
    return path


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_lazy_is_eager(engine: Any, table: Path) -> None:
    sums = PrivateCumsum("late", **OPTIONS, keep=["tail"])
    eager = sums.apply(pl.read_csv(table))
    lazy = sums.apply(pl.scan_csv(table))
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect_schema() == eager.schema
    assert lazy.collect(engine=engine).equals(eager)


def test_several_streaming_batches_are_one_stream(tmp_path: Path) -> None:
    """A table of more rows than a batch has: the engine must hand it over whole."""
    many = pl.DataFrame({"t": range(150_000)}).with_columns(x=pl.col("t") % 2)
    many.write_csv(tmp_path / "many.csv")
    sums = PrivateCumsum("x", order="t", epsilon=1)
    lazy = sums.apply(pl.scan_csv(tmp_path / "many.csv")).collect(engine="streaming")
    assert lazy.equals(sums.apply(many))


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_what_follows_changes_nothing_before(engine: Any, table: Path) -> None:
    """Filters, slices and selections behind the sum are not moved before it."""
    sums = PrivateCumsum("late", **OPTIONS)
    lazy = sums.apply(pl.scan_csv(table))
    whole = lazy.collect()
    condition = (pl.col("carrier") == "UA") & (pl.col("day") > 30)
    assert lazy.filter(condition).collect(engine=engine).equals(whole.filter(condition))
    assert lazy.head(5).collect(engine=engine).equals(whole.head(5))
    assert lazy.select("late_private").collect(engine=engine).equals(whole.select("late_private"))
    total = pl.col("late_private").sum()
    assert (
        lazy.group_by("carrier")
        .agg(total)
        .sort("carrier")
        .collect(engine=engine)
        .equals(whole.group_by("carrier").agg(total).sort("carrier"))
    )


def test_what_comes_before_is_part_of_the_data(table: Path) -> None:
    sums = PrivateCumsum("late", **OPTIONS)
    early = pl.scan_csv(table).filter(pl.col("day") < 30)
    first = sums.apply(early).collect().sort("day")
    whole = sums.apply(pl.scan_csv(table)).collect().sort("day")
    assert whole.filter(pl.col("day") < 30).equals(first)


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_source_that_changes_between_collections_is_refused(
    engine: Any, table: Path, flights: dict[str, list[Any]]
) -> None:
    lazy = private_cumsum(pl.scan_csv(table), "late", **OPTIONS)
    first = lazy.collect(engine=engine)
    assert lazy.collect(engine=engine).equals(first)
    pl.DataFrame(flights).with_columns(late=1 - pl.col("late")).write_csv(table)
    with pytest.raises((ReplayError, pl.exceptions.ComputeError), match="was counted with other rows before"):
        lazy.collect(engine=engine)


def test_lazy_frames_need_an_order_of_their_own(table: Path) -> None:
    with pytest.raises(ParameterError, match="a LazyFrame has no order of rows"):
        private_cumsum(pl.scan_csv(table), "late", epsilon=1)
    with pytest.raises(ParameterError, match="a LazyFrame has no order of rows"):
        private_cumsum(pl.scan_csv(table), "late", **OPTIONS, ties="rows")


def test_columns_are_checked_before_anything_is_read(table: Path) -> None:
    with pytest.raises(ParameterError, match="column 'early' is not in the frame"):
        private_cumsum(pl.scan_csv(table), "early", **OPTIONS)


def test_fractions_have_a_float_column(table: Path) -> None:
    lazy = private_cumsum(pl.scan_csv(table), "late", **OPTIONS, resolution=0.5)
    assert lazy.collect_schema()["late_private"] == pl.Float64 == lazy.collect()["late_private"].dtype
