"""``trilift bench``: its contract and what it refuses; the tools are in tests/experiments/bench."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trilift.experiments.bench import run as bench
from trilift.experiments.bench.environments import PeerError

Run = Callable[..., Any]
Refused = Callable[..., str]


@pytest.fixture(autouse=True)
def senders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only trilift answers, and at once; no environment is made."""

    def one(request: dict[str, Any]) -> Any:
        return 5.0 if request["do"] == "speed" else {"max": 2.0, "mean": 1.0, "chain": ["a"]}

    def sender(tool: str, folder: Path) -> Any:
        if tool != "trilift":
            raise PeerError(f"pip failed in {folder.name}")
        return lambda requests: {"version": "1", "answers": [one(request) for request in requests]}

    monkeypatch.setattr(bench, "_sender", sender)


def test_json_keeps_the_contract(run: Run, tmp_path: Path) -> None:
    done = run(
        "bench", "--n", 64, "--tools", "trilift,dpcrpy", "--envs", "E", "--out", tmp_path / "o", "--json"
    )
    assert done.code == 0
    keys = ["tool", "version", "mechanism", "n", "max_se", "mean_se", "how", "released_per_s"]
    assert all(list(row)[: len(keys)] == keys for row in done.json["rows"])
    assert {row["n"] for row in done.json["rows"]} == {64}
    assert json.loads((tmp_path / "o" / "measurements" / "bench.json").read_text()) == done.json
    assert "missing: dpcrpy: pip failed in E" in done.err


def test_a_table_is_for_people(run: Run) -> None:
    done = run("bench", "--n", 64, "--tools", "trilift", "--rounds", 1)
    assert done.code == 0
    assert "Counter, best chain, for max [fast]" in done.out


def test_nothing_measured_is_exit_code_1(run: Run) -> None:
    assert run("bench", "--n", 64, "--tools", "opendp").code == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--n", "8"], "n must be"),
        (["--n", "1e3"], "n must be an integer"),
        (["--n", "8388608"], "n must be"),
        (["--tools", "other"], "tools must be"),
        (["--rounds", "0"], "rounds must be"),
        (["--rounds", "x"], "rounds must be"),
    ],
)
def test_bad_input_is_one_line(refused: Refused, arguments: list[str], says: str) -> None:
    assert says in refused("bench", *arguments)
