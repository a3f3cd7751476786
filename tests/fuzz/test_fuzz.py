"""Fuzzing itself: it finds what is planted, it is the same for the same seed, and old findings stay away."""

import importlib.util
import subprocess
from pathlib import Path

import pytest
from trilift.experiments.trust import fuzz, fuzz_atheris, fuzz_targets
from trilift.experiments.trust.fuzz_found import FOUND
from trilift.experiments.trust.fuzz_targets import TARGETS, Target
from trilift.experiments.trust.mutation import mutants
from trilift.lift.errors import ParameterError

FOUND_ONCE = [(target, what) for target, cases in FOUND.items() for what in cases]


@pytest.mark.parametrize(("name", "what"), FOUND_ONCE)
def test_what_was_found_once(name: str, what: str) -> None:
    TARGETS[name].run(FOUND[name][what]())


@pytest.mark.parametrize("name", TARGETS)
def test_targets_take_their_seeds_and_some_mutants(name: str) -> None:
    tried, findings = fuzz.attempts(TARGETS[name], count=12, seed=2)
    assert tried == 12 + len(FOUND.get(name, {})) + len(TARGETS[name].seeds())
    assert not findings


def test_mutants_are_the_same_for_the_same_seed() -> None:
    seeds = [b'{"a": 1, "b": "x"}', b"PK\x03\x04"]
    one, other, third = (list(mutants(seeds, count=200, seed=s)) for s in (1, 1, 2))
    assert one == other != third
    assert one[:2] == seeds
    assert len(set(one)) > 120
    assert any(b"1e999999999" in data for data in one)
    assert any(len(data) < len(seeds[1]) for data in one)


def test_a_planted_fault_is_found() -> None:
    def fragile(data: bytes) -> None:
        if b'"a": -1' in data:
            raise KeyError("planted")

    target = Target("fragile", fragile, lambda: [b'{"a": 1}'])
    tried, findings = fuzz.attempts(target, count=400)
    assert tried == 401
    assert findings
    assert all(b'"a": -1' in data and "planted" in text for data, text in findings)


def test_readers_that_differ_are_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The target compares the loader with the standalone checker."""

    def stricter(path: str) -> str:
        raise fuzz_targets.check_artifact.Unreadable("for no reason")

    seed = TARGETS["artifact"].seeds()[0]
    TARGETS["artifact"].run(seed)
    monkeypatch.setattr(fuzz_targets.check_artifact, "check", stricter)
    with pytest.raises(AssertionError, match="the checker cannot"):
        TARGETS["artifact"].run(seed)


def test_seeds_are_planted_under_their_hash(tmp_path: Path) -> None:
    fuzz_atheris.plant([b"a", b"b", b"a"], tmp_path / "corpus")
    assert sorted(path.read_bytes() for path in (tmp_path / "corpus").iterdir()) == [b"a", b"b"]


def test_without_atheris(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fuzz, "find_spec", lambda name: None)
    with pytest.raises(ParameterError, match=r"trilift\[fuzz\]"):
        fuzz.hunt("job", seconds=1, corpus=tmp_path / "job")


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is an extra")
def test_atheris_runs_a_target(tmp_path: Path) -> None:
    executions, found = fuzz.hunt("job", seconds=2, corpus=tmp_path / "job")
    assert found == ""
    assert executions > 3


@pytest.mark.parametrize("status", [72, 130, -15, -9])
def test_a_run_that_is_stopped_is_no_finding(
    status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """72 is how libFuzzer ends when it is told to: it prints its statistics, and nothing has been found."""
    text = "libFuzzer: run interrupted; exiting\nstat::number_of_executed_units: 18864\n"
    done = subprocess.CompletedProcess([], status, "", text)
    monkeypatch.setattr(fuzz, "find_spec", lambda name: name)
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: done)
    with pytest.raises(ParameterError, match=r"stopped while it ran matrix \(status -?[0-9]+\)"):
        fuzz.hunt("matrix", seconds=1, corpus=tmp_path / "matrix")


def test_what_is_found_is_said_with_its_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "matrix-found-crash-1").write_bytes(b"odd")
    text = "=== Uncaught Python exception: ===\nKeyError: 3\nstat::number_of_executed_units: 7\n"
    done = subprocess.CompletedProcess([], 77, "", text)
    monkeypatch.setattr(fuzz, "find_spec", lambda name: name)
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: done)
    executions, found = fuzz.hunt("matrix", seconds=1, corpus=tmp_path / "matrix")
    assert executions == 7
    assert "exception" in found
    assert "b2Rk" in found
