"""Private sums of frames: the values of counters under the groups' keys, in any engine and order of rows."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from trilift import Counter, GaussianCounter, HorizonError, ParameterError
from trilift.counters.frames import PrivateCumsum, private_cumsum
from trilift.counters.state_file import checksum

Make = Callable[[dict[str, list[Any]]], Any]
CARRIERS = ["AA", "DL", "UA"]
OPTIONS: dict[str, Any] = {"by": "carrier", "groups": CARRIERS, "order": "day", "epsilon": 1, "horizon": 100}


def rows(frame: Any) -> dict[str, list[Any]]:
    return {name: frame[name].to_list() for name in frame.columns}


def by_hand(flights: dict[str, list[Any]], group: str) -> list[int]:
    """The values of a group in its order, each beside the day."""
    pairs = zip(flights["day"], flights["carrier"], flights["late"], strict=True)
    return [late for _, carrier, late in sorted(pairs) if carrier == group]


def test_it_is_a_counter_a_group(make: Make, flights: dict[str, list[Any]]) -> None:
    sums = PrivateCumsum("late", **OPTIONS)
    out = rows(sums.apply(make(flights)))
    assert list(out) == ["day", "carrier", "late_private"]
    assert (out["day"], out["carrier"]) == (flights["day"], flights["carrier"])  # rows stay where they were
    for carrier in CARRIERS:
        counter = sums.counter(carrier)
        wanted = counter.extend(by_hand(flights, carrier)).tolist()
        found = sorted((d, v) for d, c, v in zip(*out.values(), strict=True) if c == carrier)
        assert [value for _, value in found] == wanted
        assert counter.setup.horizon == 100


def test_a_counter_made_elsewhere_with_the_key_gives_the_same(
    flights: dict[str, list[Any]], tmp_path: Path
) -> None:
    """Nothing of frames is in the noise: an ordinary saved counter that is given the key goes on likewise."""
    sums = PrivateCumsum("late", **OPTIONS)
    inside = sums.counter("UA")
    path = tmp_path / "counter.json"
    Counter(1, horizon=100).save(path)
    record = json.loads(path.read_text())
    inside.save(tmp_path / "inside.json")
    secrets = json.loads((tmp_path / "inside.json").read_text())
    record |= {name: secrets[name] for name in ("key", "stream_id", "digest")}
    path.write_text(json.dumps(record | {"checksum": checksum(record)}))
    values = Counter.load(path).extend(by_hand(flights, "UA")).tolist()
    out = rows(sums.apply(pl.DataFrame(flights).sort("day")))
    assert [v for c, v in zip(out["carrier"], out["late_private"], strict=True) if c == "UA"] == values


def test_both_engines_and_any_order_of_rows_give_the_same(flights: dict[str, list[Any]]) -> None:
    key = bytes(range(32))
    options = OPTIONS | {"key": key, "version": "1"}
    one = private_cumsum(pd.DataFrame(flights), "late", **options)
    other = private_cumsum(pl.DataFrame(flights), "late", **options)
    assert rows(one) == rows(other)
    mixed = pd.DataFrame(flights).sample(frac=1, random_state=3)
    again = private_cumsum(mixed, "late", **options)
    assert again.index.equals(mixed.index)
    assert again.sort_values("day").late_private.tolist() == one.sort_values("day").late_private.tolist()


def test_keys_are_bound_to_everything(flights: dict[str, list[Any]]) -> None:
    """Another column, version, group or reading of the data has other noise under the same master key."""
    flights = flights | {"other": flights["late"], "airline": flights["carrier"], "when": flights["day"]}
    frame = pl.DataFrame(flights)
    base = OPTIONS | {"key": bytes(32), "version": "1"}

    def released(value: str = "late", **changes: Any) -> tuple[Any, ...]:
        out = private_cumsum(frame, value, **base | changes)
        return tuple(out.sort("when" if "when" in out.columns else "day")[f"{value}_private"].to_list())

    plain = released()
    assert plain == released()
    others = [
        released("other"),
        released(version="2"),
        released(key=bytes(31) + b"1"),
        released(by="airline"),
        released(order="when"),
        released(clip=True),
        released(nulls="zero"),
        released(person="tail", max_contributions=2),
        released(bounds=(0, 2)),
        released(horizon=100_000),
        released(epsilon=2),
        released(delta=1e-6),
        released(ties="rows"),
    ]
    assert len({plain, *others}) == 1 + len(others)
    assert released(name="late_private", keep="all", postprocess="nonnegative") == tuple(
        max(0, value) for value in plain
    )


def test_groups_have_independent_noise() -> None:
    """Sums of zeros in 300 groups: all pairs of groups differ, and the mean is near 0.

    30 steps at epsilon 1 have noise of variance about 60; the mean of 300 groups then lies within 6 standard
    deviations, sqrt(60/300) = 0.45, of 0 but with probability 2e-9.
    """
    groups = list(range(300))
    frame = pl.DataFrame({"g": [g for g in groups for _ in range(30)], "t": list(range(30)) * 300})
    frame = frame.with_columns(x=pl.lit(0))
    out = private_cumsum(
        frame, "x", by="g", groups=groups, order="t", horizon=30, epsilon=1, simulation_seed=4
    )
    noise = out["x_private"].to_numpy().reshape(300, 30)
    assert len(np.unique(noise, axis=0)) == 300
    assert abs(noise[:, -1].mean()) < 2.7
    assert 20 < noise[:, -1].var() < 180


def test_one_group_and_no_order(make: Make) -> None:
    out = private_cumsum(make({"x": [1, 0, 1], "y": ["a", "b", "c"]}), "x", epsilon=1, keep=["y"])
    assert list(rows(out)) == ["y", "x_private"]
    sums = PrivateCumsum("x", epsilon=1)
    values = rows(sums.apply(make({"x": [1, 0, 1]})))["x_private"]
    assert values == sums.counter().extend([1, 0, 1]).tolist()
    empty = rows(private_cumsum(make({"x": [1]}).head(0), "x", epsilon=1, keep="all"))
    assert empty == {"x_private": []}


@pytest.mark.parametrize(
    ("keep", "columns"), [("all", ["y"]), ("x", ["x"]), (["x", "y"], ["x", "y"]), ((), [])]
)
def test_the_private_column_is_kept_only_by_name(keep: Any, columns: list[str], make: Make) -> None:
    out = private_cumsum(make({"x": [1, 0, 1], "y": ["a", "b", "c"]}), "x", epsilon=1, keep=keep)
    assert list(rows(out)) == [*columns, "x_private"]


def test_gaussian_noise_lattices_and_postprocessing(make: Make) -> None:
    frame = make({"g": ["a", "b"] * 4, "t": list(range(8)), "x": [0.25, 1.5, 0.0, 2.0, 1.0, 0.5, 0.75, 2.0]})
    sums = PrivateCumsum(
        "x",
        by="g",
        groups=["a", "b"],
        order="t",
        epsilon=1,
        delta=1e-6,
        horizon=10,
        bounds=(0, 2),
        resolution=Fraction(1, 4),
        postprocess="monotone",
        max_contributions=2,
    )
    out = rows(sums.apply(frame))["x_private"]
    counter = sums.counter("a")
    assert isinstance(counter, GaussianCounter)
    assert out[::2] == counter.extend([0.25, 0.0, 1.0, 0.75]).tolist()
    assert all(isinstance(value, float) and value * 4 == round(value * 4) for value in out)


def test_several_columns_for_groups_and_order(make: Make) -> None:
    frame = make(
        {
            "a": ["x", "x", "y", "x"],
            "b": [1, 2, 1, 1],
            "t": [2, 1, 1, 1],
            "u": [0, 0, 0, 9],
            "v": [1, 1, 0, 0],
        }
    )
    groups = [("x", 1), ("x", 2), ("y", 1), ("y", 2)]
    sums = PrivateCumsum("v", by=["a", "b"], groups=groups, order=["t", "u"], epsilon=1)
    out = rows(sums.apply(frame))
    assert list(out) == ["a", "b", "t", "u", "v_private"]
    first = sums.counter("x", 1).extend([0, 1]).tolist()
    assert [out["v_private"][3], out["v_private"][0]] == first


def test_null_groups_are_groups_where_declared(make: Make) -> None:
    frame = make({"g": ["a", None, "a", None], "t": [1, 2, 3, 4], "x": [1, 1, 1, 1]})
    sums = PrivateCumsum("x", by="g", groups=["a", None], order="t", epsilon=1)
    out = rows(sums.apply(frame))["x_private"]
    assert [out[1], out[3]] == sums.counter(None).extend([1, 1]).tolist()
    with pytest.raises(ParameterError, match="group None is not among the declared groups"):
        private_cumsum(frame, "x", by="g", groups=["a"], order="t", epsilon=1)


def test_texts_and_numbers_that_look_alike_are_different_groups() -> None:
    frame = pd.DataFrame({"g": pd.Series([1, "1", True], dtype=object), "t": [1, 2, 3], "x": [1, 1, 1]})
    sums = PrivateCumsum("x", by="g", groups=[1, "1", True], order="t", epsilon=Fraction(1, 100))
    out = sums.apply(frame)["x_private"].tolist()
    assert out == [int(sums.counter(g).update(1)) for g in (1, "1", True)]
    assert len(set(out)) == 3  # noise of scale in the hundreds


def test_horizons_of_groups(make: Make, flights: dict[str, list[Any]]) -> None:
    horizons = {"AA": 20, "DL": 21, "UA": None}
    sums = PrivateCumsum("late", **OPTIONS | {"horizon": horizons})
    sums.apply(make(flights))
    assert [sums.counter(c).horizon for c in CARRIERS] == [20, 21, None]
    with pytest.raises(HorizonError, match="group 'DL' has 20 rows, its horizon is 19"):
        private_cumsum(make(flights), "late", **OPTIONS | {"horizon": horizons | {"DL": 19}})


def test_observed_groups_must_be_said_to_be_public(make: Make, flights: dict[str, list[Any]]) -> None:
    with pytest.raises(ParameterError, match="groups must be given"):
        private_cumsum(make(flights), "late", **OPTIONS | {"groups": None})
    sums = PrivateCumsum("late", **OPTIONS | {"groups": "observed"})
    out = rows(sums.apply(make(flights)))
    assert len(out["late_private"]) == 60
    assert "those that occur" in sums.privacy_statement()


def test_rows_without_a_value(make: Make) -> None:
    frame = make({"t": [1, 2, 3], "x": [1, None, 1]})
    with pytest.raises(ParameterError, match="column 'x' has no value in row 1"):
        private_cumsum(frame, "x", order="t", epsilon=1)
    sums = PrivateCumsum("x", order="t", epsilon=1, nulls="zero")
    assert rows(sums.apply(frame))["x_private"] == sums.counter().extend([1, 0, 1]).tolist()
    with pytest.raises(ParameterError, match="0 is not within the bounds"):
        private_cumsum(frame, "x", order="t", epsilon=1, nulls="zero", bounds=(1, 2))


def test_rows_of_one_person(make: Make) -> None:
    """Counted over all groups, in order; later ones are refused, or count as 0."""
    frame = make(
        {"g": ["a", "b", "a", "b"], "t": [4, 3, 2, 1], "who": ["p", "p", "p", "q"], "x": [1, 1, 1, 1]}
    )
    options: dict[str, Any] = {"by": "g", "groups": ["a", "b"], "order": "t", "epsilon": 1, "person": "who"}
    private_cumsum(frame, "x", **options, max_contributions=3)
    with pytest.raises(ParameterError, match="row 0: its person has more than max_contributions = 2 rows"):
        private_cumsum(frame, "x", **options, max_contributions=2)
    sums = PrivateCumsum("x", **options, max_contributions=1, excess="zero")
    out = rows(sums.apply(frame))
    assert list(out) == ["g", "t", "x_private"]
    assert [out["x_private"][2], out["x_private"][0]] == sums.counter("a").extend([1, 0]).tolist()
    assert [out["x_private"][3], out["x_private"][1]] == sums.counter("b").extend([1, 0]).tolist()
    nobody = make({"t": [1, 2], "who": ["p", None], "x": [1, 1]})
    with pytest.raises(ParameterError, match="row 1 is nobody's"):
        private_cumsum(nobody, "x", order="t", epsilon=1, person="who")


def test_the_spent_budget_of_a_person_in_several_groups_adds_up() -> None:
    """The proportion that the guarantee rests on, from the ledgers: k_i rows of k cost epsilon k_i / k."""
    sums = PrivateCumsum(
        "x", by="g", groups=["a", "b"], epsilon=Fraction(3, 2), horizon=50, max_contributions=3
    )
    spent = Fraction(0)
    for group, rows_there in (("a", 1), ("b", 2)):
        ledger = sums.counter(group).setup.ledger
        assert ledger.change == 3
        spent += ledger.spent * rows_there / 3
    assert Fraction(149, 100) < spent <= Fraction(3, 2)


def test_statement_names_what_matters(flights: dict[str, list[Any]]) -> None:
    sums = PrivateCumsum("late", **OPTIONS, version="2013", person="tail", max_contributions=2, nulls="zero")
    text = sums.privacy_statement()
    for words in (
        "groups by carrier, 3 declared, ordered by day; version '2013'",
        "at most 2 rows of one person, all groups",
        "is not covered",
        "epsilon = 1, delta = 0",
        "parallel composition",
        "without a value count as 0",
        "Rows of a person ('tail') beyond 2 are refused",
        "two streams of 100 steps that differ in at most 2 inputs",
    ):
        assert words in text, words
    assert PrivateCumsum("late", epsilon=1, simulation_seed=3).privacy_statement().startswith("SIMULATION")
    assert str(flights["late"]) not in repr(sums)
