"""``trilift optimize --job`` and ``trilift runs``."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trilift.factorize.runs
from trilift.artifacts import load
from trilift.factorize.runs import RunResult, run_job

Run = Callable[..., Any]

JOB = """
size = 4
objective = "max"
seed = 3
[[phase]]
method = "search"
objective = "mean"
steps = 400
starts = 2
[[phase]]
method = "refine"
steps = 400
starts = 2
[[phase]]
method = "polish"
iterations = 30
"""


@pytest.mark.slow
def test_from_a_job_to_a_certified_artifact(run: Run) -> None:
    Path("job.toml").write_text(JOB, encoding="utf-8")
    done = run("optimize", "--job", "job.toml", "--json")
    assert done.code == 0
    assert done.err.startswith("Searching two-sided max 4 in 3 phases: ")
    record = done.json
    assert (record["kind"], record["size"], record["objective"]) == ("stage", 4, "max")
    assert (record["status"], record["run"]) == ("finished", "job.run")
    assert Path("job.run/job.toml").read_text(encoding="utf-8") == JOB
    certified = run("certify", record["path"], "--json")
    assert certified.code == 0
    for key in ("kappa_max", "kappa_mean", "sha256"):
        assert certified.json[key] == record[key]
    found = run("inspect", record["path"], "--json").json["provenance"]
    assert (found["seed"], found["size"]) == (3, 4)
    assert found["method"].startswith("job of 3 phases: search -> refine")

    again = run("optimize", "--job", "job.toml")
    assert (again.code, again.out) == (2, "")
    assert again.err.splitlines()[-1].startswith("trilift: job.run has a run in it already")
    resumed = run("optimize", "--job", "job.toml", "--resume", "--json")
    assert resumed.code == 0
    assert resumed.json["sha256"] == record["sha256"]

    other = JOB.replace("seed = 3", "seed = 4")
    Path("job.toml").write_text(other, encoding="utf-8")
    mixed = run("optimize", "--job", "job.toml", "--resume")
    assert mixed.code == 2
    assert "has another job" in mixed.err
    assert run("optimize", "--job", "job.toml", "--run", "other").code == 0

    compared = run("runs", "job.run", "other", "--json")
    assert compared.code == 0
    assert {row["run"]: row["seed"] for row in compared.json} == {"job.run": 3, "other": 4}
    kappas = [row["kappa"] for row in compared.json]
    assert kappas == sorted(kappas)
    assert all(row["status"] == "finished" for row in compared.json)
    table = run("runs", "job.run", "other").out.splitlines()
    assert table[0] == "2 runs"
    assert sum("3/3 polish" in line for line in table) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_stops_a_run_that_can_go_on(
    run: Run, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int
) -> None:
    Path("job.toml").write_text(JOB, encoding="utf-8")

    def struck(job: Path, folder: Path, **options: Any) -> RunResult:
        return run_job(job, folder, **options, progress=lambda *_: os.kill(os.getpid(), number))

    with monkeypatch.context() as patch:
        patch.setattr(trilift.factorize.runs, "run_job", struck)
        stopped = run("optimize", "--job", "job.toml", "--json")
    assert (stopped.code, stopped.out) == (code, "")
    assert stopped.err.splitlines()[-1] == (
        "trilift: stopped; the same command with --resume goes on with the run in job.run"
    )
    (row,) = run("runs", "job.run", "--json").json
    assert (row["status"], row["phase"]) == ("interrupted", 1)
    assert run("optimize", "--job", "job.toml", "--resume").code == 0
    assert run("optimize", "--job", "job.toml", "--run", "alone").code == 0
    assert load("job.run/artifact.npz").certificate == load("alone/artifact.npz").certificate


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size = 4", "the key 'objective' is missing"),
        ("size = nan\nobjective = 'max'", "size must be an integer >= 2 and <= 4096, got nan"),
        ("size = 4\nobjective = 'max'\nseconds = nan", "seconds must be a finite number > 0, got nan"),
        ("size = 4\nobjective = 'max'\nsteps = 5", "unknown key 'steps'"),
        ("size = '4'\nobjective = 'max'", "size must be an integer"),
        ("size = 4\nobjective = 'max'\n[[phase]]\nmethod = 'search'\nstart = 1", "unknown key 'start'"),
        ("size = ", "is not TOML"),
    ],
)
def test_bad_jobs(refused: Callable[..., str], text: str, message: str) -> None:
    Path("job.toml").write_text(text, encoding="utf-8")
    line = refused("optimize", "--job", "job.toml", "--json")
    assert line.startswith("trilift: job file job.toml")
    assert message in line
    assert not Path("job.run").exists()


def test_bad_usage(refused: Callable[..., str], run: Run) -> None:
    Path("job.toml").write_text(JOB, encoding="utf-8")
    assert "none.toml cannot be read" in refused("optimize", "--job", "none.toml")
    assert "--coordinator" in refused("optimize", "--job", "job.toml", "--hosts", 2, "--host", 1)
    bad = refused("optimize", "--job", "job.toml", "--hosts", 2, "--coordinator", "nowhere")
    assert "coordinator must be an address with a port" in bad
    both = refused("optimize", "--job", "job.toml", "stage", "--size", 4, "--out", "s.npz")
    assert "--job is a search of its own, without stage" in both
    assert "catalogue has no run in it" in refused("runs", "catalogue")
    helped = run("optimize")
    assert helped.code == 0
    assert "--job" in helped.out
    Path("catalogue/run.npz").write_bytes(b"junk")
    Path("catalogue/job.toml").write_text(JOB, encoding="utf-8")
    assert "cannot be read" in refused("runs", "catalogue")


def test_time_that_runs_out_is_said(run: Run) -> None:
    Path("job.toml").write_text("seconds = 0.01\n" + JOB.replace("400", "20000"), encoding="utf-8")
    done = run("optimize", "--job", "job.toml", "--json")
    assert done.code in (0, 2)  # 2: not one chunk of steps fitted into the time
    (row,) = json.loads(run("runs", "job.run", "--json").out)
    assert row["status"] == "out of time"
