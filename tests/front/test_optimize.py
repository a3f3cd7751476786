"""``trilift optimize``, and what its artifacts are good for."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trilift.factorize
from trilift.artifacts import load
from trilift.factorize import SearchResult, search_stage

Run = Callable[..., Any]


TINY = ("--steps", 40, "--starts", 2, "--seed", 3)


@pytest.mark.slow
def test_from_search_to_count(run: Run) -> None:
    stage = run("optimize", "stage", "--size", 4, "--out", "s.npz", "--json", *TINY)
    direct = run("optimize", "direct", "--size", 4, "--objective", "mean", "--out", "d.npz", "--json", *TINY)
    for done, kind, objective in ((stage, "stage", "max"), (direct, "direct", "mean")):
        assert done.code == 0
        assert done.err.startswith(f"Searching {kind} {objective} 4: 2 starts of 40 steps")
        record = done.json
        assert (record["kind"], record["size"], record["objective"]) == (kind, 4, objective)
        assert (record["status"], record["steps"]) == ("finished", 40)
        certified = run("certify", record["path"], "--json")
        assert certified.code == 0
        for key in ("kappa_max", "kappa_mean", "sha256"):
            assert certified.json[key] == record[key]
        assert run("inspect", record["path"], "--json").json["provenance"]["seed"] == 3
    assert not list(Path().glob("*.search*"))
    planned = run("plan", "-n", 16, "-e", 1, "--artifact", "s.npz", "--artifact", "d.npz", "--json")
    assert planned.code == 0
    options = ("-n", 16, "-e", "1e6", "-q", "--chain", "s.npz", "--chain", "d.npz")
    counted = run("count", "-", *options, stdin=b"1\n" * 16)
    assert counted.values == list(range(1, 17))
    Path("s.npz").rename("catalogue/mine.npz")
    assert "mine" in [record["name"] for record in run("artifacts", "--json").json]
    assert (
        run(
            "count", "-", "-n", 9, "-e", "1e6", "-q", "--chain", "mine", "--chain", "d.npz", stdin=b"1\n"
        ).code
        == 0
    )


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_the_search(
    run: Run, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int
) -> None:
    """The signal arrives after the first chunk; the resumed search ends like one that was left alone."""

    def struck(size: int, **options: Any) -> SearchResult:
        return search_stage(size, **options, progress=lambda step, steps, kappa: os.kill(os.getpid(), number))

    arguments = ("optimize", "stage", "--size", 4, "--steps", 300, "--starts", 2, "--one-sided")
    with monkeypatch.context() as patch:
        patch.setattr(trilift.factorize, "search_stage", struck)
        stopped = run(*arguments, "--out", "s.npz", "--json")
    assert (stopped.code, stopped.out) == (code, "")
    last = stopped.err.splitlines()[-1]
    assert last.startswith("trilift: stopped at step 200 of 300; the same command with --resume goes on from")
    assert not Path("s.npz").exists()
    again = run(*arguments, "--out", "s.npz")
    assert again.code == 2
    assert "s.search.npz exists" in again.err
    assert run(*arguments, "--out", "s.npz", "--resume").code == 0
    assert not Path("s.search.npz").exists()
    assert run(*arguments, "--out", "alone.npz", "--checkpoint", "kept.npz").code == 0
    assert Path("kept.npz").exists()
    assert load("s.npz").certificate == load("alone.npz").certificate
    assert load("s.npz").stage.one_sided


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("stage", "--size", 4, "--out", "s.txt"), "--out must end in .npz, got s.txt"),
        (("stage", "--size", 4, "--out", "no/s.npz"), "the folder no does not exist"),
        (("stage", "--size", 4, "--out", "there.npz"), "--out there.npz exists already"),
        (("stage", "--size", 1, "--out", "s.npz"), "size must be an integer >= 2"),
        (("direct", "--size", 4, "--out", "s.npz", "--steps", 0), "steps must be an integer >= 1"),
        (("direct", "--size", 4, "--out", "s.npz", "--one-sided"), "No such option"),
        (("stage", "--out", "s.npz"), "Missing option '--size'"),
        (("square",), "No such command 'square'"),
    ],
)
def test_bad_arguments(refused: Callable[..., str], arguments: tuple[object, ...], message: str) -> None:
    Path("there.npz").write_bytes(b"")
    assert message in refused("optimize", *arguments)


def test_bad_objectives_and_checkpoints(run: Run) -> None:
    """Found by the search itself, after its cost is said."""
    done = run("optimize", "stage", "--size", 4, "--out", "s.npz", "--objective", "best")
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[-1] == "trilift: objective must be one of 'max', 'mean', got 'best'"
    done = run("optimize", "stage", "--size", 4, "--out", "s.npz", "--resume")
    assert done.code == 2
    assert "s.search.npz does not exist" in done.err
