"""One run: its rows, ratios and what is missing."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from trilift.experiments.bench import run
from trilift.experiments.bench.environments import PeerError
from trilift.experiments.bench.page import load_record, save_record, section, shown_rows
from trilift.experiments.bench.picture import draw_peers, series
from trilift.lift.errors import ParameterError

CONTRACT = ["tool", "version", "mechanism", "n", "max_se", "mean_se", "how", "released_per_s"]
N = 64


def fake(tool: str, folder: Path) -> Any:
    """Return a sender that answers as the script of a tool does."""
    if tool == "jax_privacy":
        raise PeerError("no network")
    rates = iter(range(1, 1000))

    def one(request: Mapping[str, Any]) -> Any:
        if request["do"] == "speed":
            rate = float(next(rates))
            return {"rate": rate, "squares": [1.0]} if tool == "opendp" else rate
        if request["do"] == "errors":
            known: dict[str, Any] = {"max": 2.0, "mean": 1.0}
            return known | ({"chain": ["a"]} if tool == "trilift" else {})
        return 3.0

    def send(requests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {"version": "1", "answers": [one(request) for request in requests]}

    return send


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(run, "_sender", fake)
    said: list[str] = []
    found = run.measure(horizons=(N,), rounds=3, optimisers=False, tell=said.append)
    assert "speeds, round 3 of 3" in said
    return found


def test_rows_keep_the_contract(record: dict[str, Any]) -> None:
    assert {row["tool"] for row in record["rows"]} == {"trilift", "dpcrpy", "OpenDP", "averaged tree"}
    for row in record["rows"]:
        assert list(row)[: len(CONTRACT)] == CONTRACT
        assert row["n"] == N
        assert row["how"] in {"exact", "empirical"}
        assert (row["max_se"] is None) == (row["privacy"] == "none")
    assert record["missing"] == [{"tool": "jax_privacy", "why": "no network"}]


def test_ratios_compare_with_the_counter_that_is_best_for_each_error(record: dict[str, Any]) -> None:
    of = {(entry["tool"], entry["mechanism"]): entry for entry in record["ratios"]}
    for row in record["rows"]:
        if row["tool"] == "trilift":
            continue
        entry = of[row["tool"], row["mechanism"]]
        if row["max_se"] is not None:
            assert entry["max"] == entry["max_default"] == row["max_se"] / 2.0
            assert entry["mean"] == row["mean_se"] / 1.0
        if row["theory_max_se"] is not None:
            assert entry["theory_max"] == row["theory_max_se"] / 2.0
    assert all(e["speed"] is None for e in record["ratios"] if e["tool"] == "averaged tree")
    # Our first counter is timed first in its process and each round: rates 1, 12, 23.
    ours = next(row for row in record["rows"] if row["tool"] == "trilift")
    count = sum(row["tool"] == "trilift" for row in record["rows"])
    assert ours["released_per_s"] == 1 + count


def test_a_round_that_fails_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def sender(tool: str, folder: Path) -> Any:
        send = fake(tool, folder)

        def careful(requests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
            if any(request["do"] == "speed" for request in requests):
                raise PeerError("killed")
            return send(requests)  # type: ignore[no-any-return]

        return careful

    monkeypatch.setattr(run, "_sender", sender)
    record = run.measure(horizons=(N,), tools=("dpcrpy",), rounds=1, optimisers=False)
    assert record["missing"] == [{"tool": "dpcrpy", "why": "speeds of a round: killed"}]
    assert all(row["released_per_s"] is None for row in record["rows"])


def test_optimised_parameters_are_kept(tmp_path: Path) -> None:
    asked = []

    def send(requests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        asked.append(requests)
        return {"version": "1", "answers": [{"n": 8, "value": 1.5}]}

    for _ in range(2):
        found = run._kept(tmp_path / "kept.json", "blt-8", {"do": "optimise", "n": 8}, send, lambda _: None)
        assert found == {"n": 8, "value": 1.5}
    assert len(asked) == 1


def test_page_and_picture(record: dict[str, Any], tmp_path: Path) -> None:
    path = save_record(record, tmp_path / "bench.json")
    assert load_record(path) == record
    text = section(record)
    assert "Missing in this run: jax_privacy: no network" in text
    assert all(row["mechanism"] in text for row in record["rows"] if row["privacy"] == "pure")
    assert all(len(line) < 1000 for line in text.splitlines())
    header, rows = shown_rows(record)
    assert len(rows) == len(record["rows"])
    assert all(len(row) == len(header) for row in rows)
    assert series(record, "max")["trilift, best chain"] == {N: 2.0}
    pytest.importorskip("matplotlib")
    draw_peers(record, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    for bad in ("{", "[]", "{}"):
        path.write_text(bad, encoding="utf-8")
        with pytest.raises(ParameterError, match="no record"):
            load_record(path)
