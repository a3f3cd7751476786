"""Runs of jobs: killed at any moment and resumed they end the same; their folders, logs and limits."""

import json
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from trilift.factorize import compare, runs
from trilift.factorize.books import BOOKS, load_books
from trilift.factorize.runlog import LOG, RunLog, read_log
from trilift.factorize.runs import run_job
from trilift.factorize.sources import BEST, load_float_stage
from trilift.lift.errors import ArtifactFormatError, ParameterError, StateError

SMALL = """
size = 5
objective = "max"
seed = 3
checkpoint_seconds = 0.0

[[phase]]
method = "search"
objective = "mean"
steps = 500
starts = 2

[[phase]]
method = "refine"
steps = 300
starts = 2

[[phase]]
method = "escape"
steps = 100
starts = 2
rounds = 3

[[phase]]
method = "polish"
iterations = 40
"""

LADDER = """
size = 15
objective = "mean"
interior = true
seed = 1
checkpoint_seconds = 0.0

[[phase]]
method = "search"
size = 5
steps = 300
starts = 2

[[phase]]
method = "search"
size = 3
steps = 300
starts = 2

[[phase]]
method = "composite"
parts = [1, 2]

[[phase]]
method = "joint"
steps = 60

[[phase]]
method = "joint"
steps = 40
rounds = 2
spread = [0.05, 0.1]
"""


@pytest.fixture
def job(tmp_path):
    def write(text, name="job.toml"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write


def parts(stage):
    return [getattr(stage, part) for part in "ABwg"]


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(parts(one), parts(other), strict=True))


PROGRAM = """
import sys
from trilift.factorize.runs import run_job
print("imported", flush=True)
run_job(sys.argv[1], sys.argv[2], resume=True, progress=False)
"""


@pytest.mark.slow
@pytest.mark.parametrize("text", [SMALL, LADDER], ids=["search", "joint"])
def test_a_run_killed_at_random_times_ends_like_one_left_alone(job, tmp_path, text):
    path, folder = job(text), tmp_path / "killed"
    chance, kills = random.Random(7), 0
    while True:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(path), str(folder)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "imported\n"
        before = len(read_log(folder / LOG)) if kills else 0
        while process.poll() is None and kills < 3:
            # some way into the work of this process, whatever the machine's speed
            if len(read_log(folder / LOG)) >= before + 1 + chance.randrange(4):
                time.sleep(chance.uniform(0, 0.3))
                process.kill()
                break
            time.sleep(0.005)
        process.stdout.close()
        if process.wait(timeout=120) == 0:
            break
        assert process.returncode == -signal.SIGKILL
        kills += 1
    assert kills >= 1
    assert load_books(folder / BOOKS).status == "finished"
    whole = run_job(path, tmp_path / "whole", progress=False)
    books = load_books(folder / BOOKS)
    assert books.best_kappa == whole.kappa
    assert same(books.best, whole.stage)
    assert books.lineage == load_books(tmp_path / "whole" / BOOKS).lineage
    # the log tells every step once, as that of the other run does
    steps = [
        [(r["phase"], r["round"], r.get("step"), r["kappa"]) for r in read_log(place / LOG) if "step" in r]
        for place in (folder, tmp_path / "whole")
    ]
    assert steps[0] == steps[1]
    left = sorted(file.name for file in folder.iterdir())
    assert left == sorted([BEST, BOOKS, LOG, "job.toml", "lock"])


def test_a_run_leaves_a_log_books_and_the_best_stage(job, tmp_path):
    path = job(SMALL)
    result = run_job(path, tmp_path / "run", progress=False)
    assert result.status == "finished"
    assert (tmp_path / "run" / "job.toml").read_bytes() == path.read_bytes()
    records = read_log(tmp_path / "run" / LOG)
    assert records[0]["event"] == "begun"
    assert records[0]["memory_bytes"] > 0
    assert records[-1] == records[-1] | {"event": "finished", "kappa": pytest.approx(result.kappa)}
    work = [record for record in records if "step" in record]
    assert {record["method"] for record in work} == {"search", "refine", "escape", "polish"}
    assert {"phase", "round", "step", "steps", "kappa", "seconds"} <= work[0].keys()
    seconds = [record["seconds"] for record in records]
    assert seconds == sorted(seconds)
    with np.load(tmp_path / "run" / BEST, allow_pickle=False) as file:
        assert np.array_equal(file["B"], result.stage.B)
        lineage = json.loads(str(file["provenance"]))["lineage"]
    assert lineage == result.lineage
    assert lineage[0]["way"] == "search"
    assert result.stage.residual() < 1e-12
    assert result.stage.kappa("max") == pytest.approx(result.kappa)
    again = run_job(path, tmp_path / "run", resume=True, progress=False)
    assert again.kappa == result.kappa
    assert same(again.stage, result.stage)


def test_no_phase_ever_loses_what_was_gained(job, tmp_path):
    run_job(job(SMALL), tmp_path / "run", progress=False)
    done = [record for record in read_log(tmp_path / "run" / LOG) if record.get("event") == "done"]
    best = [record["best"] for record in done]
    assert best == sorted(best, reverse=True)
    own = [record["kappa"] for record in done if record["objective"] == "max"]
    assert own == sorted(own, reverse=True)


def test_a_time_budget_stops_a_run_and_a_longer_one_goes_on(job, tmp_path):
    text = SMALL.replace("steps = 500", "steps = 8000")
    short = job("seconds = 0.05\n" + text, "short.toml")
    stopped = run_job(short, tmp_path / "run", progress=False)
    assert stopped.status == "out of time"
    worked = any("step" in record for record in read_log(tmp_path / "run" / LOG))
    assert (stopped.stage is not None) == worked  # a slow machine may not get to the first chunk's end
    assert load_books(tmp_path / "run" / BOOKS).place == (0, 0)
    assert run_job(short, tmp_path / "run", resume=True, progress=False).status == "out of time"
    whole = run_job(job(text, "long.toml"), tmp_path / "run", resume=True, progress=False)
    alone = run_job(job(text, "long.toml"), tmp_path / "alone", progress=False)
    assert whole.status == alone.status == "finished"
    assert same(whole.stage, alone.stage)


def test_a_time_budget_stops_polishing_too(job, tmp_path):
    text = """
    size = 33
    objective = "mean"
    warm_start = "stage-mean-33"
    seconds = 0.3
    [[phase]]
    method = "polish"
    iterations = 100000
    """
    result = run_job(job(text), tmp_path / "run", progress=False)
    assert result.status == "out of time"
    assert result.kappa <= load_float_stage("stage-mean-33").kappa("mean") * (1 + 1e-9)


def test_warm_starts_from_the_catalogue_never_end_worse(job, tmp_path):
    text = """
    size = 9
    objective = "max"
    warm_start = "stage-max-9"
    [[phase]]
    method = "escape"
    steps = 20
    starts = 2
    rounds = 1
    """
    result = run_job(job(text), tmp_path / "run", progress=False)
    assert result.kappa <= load_float_stage("stage-max-9").kappa("max") * (1 + 1e-9)


def test_plain_factorisations_as_composites_of_a_chain(job, tmp_path):
    text = """
    kind = "direct"
    size = 72
    objective = "mean"
    [[phase]]
    method = "composite"
    parts = ["stage-mean-9", "direct-mean-8"]
    [[phase]]
    method = "joint"
    steps = 10
    """
    result = run_job(job(text), tmp_path / "run", progress=False)
    assert result.stage.is_plain
    assert result.stage.size == 72
    assert result.stage.residual() < 1e-10


def test_folders_are_not_overwritten_nor_mixed_up(job, tmp_path):
    quick = SMALL.replace("500", "20").replace("300", "20").replace("= 100", "= 20")
    run_job(job(quick), tmp_path / "run", progress=False)
    with pytest.raises(ParameterError, match="has a run in it already"):
        run_job(job(quick), tmp_path / "run", progress=False)
    with pytest.raises(ParameterError, match="another job"):
        run_job(job(quick.replace("seed = 3", "seed = 4")), tmp_path / "run", resume=True, progress=False)
    with runs._alone_in(tmp_path / "run"):
        assert runs.is_at_work(tmp_path / "run")
        with pytest.raises(StateError, match="another process"):
            run_job(job(quick), tmp_path / "run", resume=True, progress=False)
    assert not runs.is_at_work(tmp_path / "run")
    (tmp_path / "run" / BOOKS).write_bytes(b"nonsense")
    with pytest.raises(ArtifactFormatError, match="cannot be read"):
        run_job(job(quick), tmp_path / "run", resume=True, progress=False)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ParameterError, match="cannot be made"):
        run_job(job(quick), tmp_path / "file" / "run", progress=False)


def test_parts_that_do_not_make_up_the_size_are_refused(job, tmp_path):
    text = """
    size = 82
    objective = "mean"
    [[phase]]
    method = "composite"
    parts = ["stage-mean-9", "stage-mean-9"]
    """
    with pytest.raises(ParameterError, match="make up size 81, not 82"):
        run_job(job(text), tmp_path / "run", progress=False)


def test_runs_side_by_side(job, tmp_path):
    quick = SMALL.replace("500", "20").replace("300", "20").replace("= 100", "= 20")
    for seed in (3, 4):
        path = job(quick.replace("seed = 3", f"seed = {seed}"))
        run_job(path, tmp_path / f"run-{seed}", progress=False)
    summaries = compare.compare_runs([tmp_path / "run-3", tmp_path / "run-4"])
    assert [run.kappa for run in summaries] == sorted(run.kappa for run in summaries)
    assert {run.seed for run in summaries} == {3, 4}
    assert {(run.status, run.phase, run.phases) for run in summaries} == {("finished", 4, 4)}
    with pytest.raises(ParameterError, match="has no run in it"):
        compare.summarise_run(tmp_path)


def test_a_log_forgets_a_line_cut_short_and_refuses_nonsense(tmp_path):
    log = RunLog(tmp_path / LOG)
    log.append(event="begun", kappa=float("inf"), seconds=0.25)
    with log.path.open("a") as file:
        file.write('{"event": "ha')
    assert read_log(log.path) == [{"event": "begun", "kappa": None, "seconds": 0.25}]
    log.keep(lambda record: True)
    log.append(event="resumed")
    assert [record["event"] for record in read_log(log.path)] == ["begun", "resumed"]
    log.path.write_text("17\n")
    with pytest.raises(ArtifactFormatError, match="line 1"):
        read_log(log.path)
