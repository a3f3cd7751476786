"""Job files: what they may say, and that everything else is refused before any work is done."""

import tomllib

import pytest
from trilift.factorize.jobs import METHODS, estimate_job, parse_job, read_job
from trilift.factorize.schedule import cold, warm
from trilift.lift.errors import ParameterError

MEAN = {"size": 9, "objective": "mean"}


def with_phase(**keys):
    return MEAN | {"phase": [{"method": "search"}, keys]}


def test_defaults_search_the_mean_before_the_max():
    job = parse_job({"size": 9, "objective": "max", "seed": 5})
    assert [(phase.method, phase.objective) for phase in job.phases] == [
        ("search", "mean"),
        ("refine", "max"),
        ("escape", "max"),
        ("polish", "max"),
        ("refine", "max"),
    ]
    assert job.phases[0].schedule == cold(largest=False)
    assert job.phases[1].schedule == warm(largest=True)
    assert (job.kind, job.seed, job.seconds) == ("two-sided", 5, None)
    assert all(phase.size == 9 for phase in job.phases)


def test_everything_can_be_said():
    text = """
    kind = "two-sided"
    size = 15
    objective = "mean"
    interior = true
    seed = 7
    seconds = 60
    warm_start = "stage-mean-9"
    devices = 2
    checkpoint_seconds = 0.5
    [[phase]]
    method = "search"
    objective = "max"
    size = 5
    starts = 3
    steps = 10
    rounds = 2
    spread = [0.1, 1]
    schedule = {rate = 0.01, smoothing = [1, 1e-4], exponent = [2, 100], settled = 0.5}
    [[phase]]
    method = "composite"
    parts = [1, "stage-mean-9"]
    size = 45
    [[phase]]
    method = "composite"
    parts = ["a.npz", "b.npz"]
    [[phase]]
    method = "joint"
    steps = 5
    rounds = 2
    spread = [0.0, 0.1]
    schedule = "gentle"
    dilation = 1
    weight_bits = 10
    weight_range = [0.1, 0.9]
    """
    job = parse_job(tomllib.loads(text))
    search, composite, _, joint = job.phases
    assert (search.size, search.starts, search.steps, search.rounds, search.spread) == (5, 3, 10, 2, (0.1, 1))
    assert (search.schedule.rate, search.schedule.exponent) == (0.01, (2.0, 100.0))
    assert composite.parts == (1, "stage-mean-9")
    assert (joint.interior, joint.dilation, joint.weight_bits, joint.weight_range) == (
        True,
        1,
        10,
        (0.1, 0.9),
    )
    assert (job.interior, job.seconds, job.devices, job.checkpoint_seconds) == (True, 60.0, 2, 0.5)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([], "job must be a table"),
        ({"size": 9}, "'objective' is missing"),
        ({"objective": "mean"}, "'size' is missing"),
        (MEAN | {"sise": 9}, "unknown key 'sise'"),
        (MEAN | {"size": 9.0}, "size must be an integer"),
        (MEAN | {"size": True}, "size must be an integer"),
        (MEAN | {"size": 1}, "size must be an integer >= 2"),
        (MEAN | {"size": 5000}, "<= 4096"),
        (MEAN | {"objective": "median"}, "objective must be one of"),
        (MEAN | {"kind": "stage"}, "kind must be one of"),
        (MEAN | {"seed": -1}, "seed must be an integer >= 0"),
        (MEAN | {"seconds": float("nan")}, "seconds must be a finite number > 0, got nan"),
        (MEAN | {"seconds": float("inf")}, "seconds must be a finite number > 0, got inf"),
        (MEAN | {"seconds": 0}, "seconds must be a finite number > 0"),
        (MEAN | {"seconds": "1"}, "seconds must be a finite number > 0"),
        (MEAN | {"interior": 1}, "interior must be True or False"),
        (MEAN | {"interior": True, "kind": "direct"}, "interior is about stages"),
        (MEAN | {"warm_start": 3}, "warm_start must be"),
        (MEAN | {"devices": 0}, "devices must be an integer >= 1"),
        (MEAN | {"checkpoint_seconds": -1}, "checkpoint_seconds must be"),
        (MEAN | {"phase": []}, "phase must be one or more tables"),
        (MEAN | {"phase": {"method": "search"}}, "phase must be one or more tables"),
        (MEAN | {"phase": [{}]}, "phase 1: the key 'method' is missing"),
        (MEAN | {"phase": [{"method": "guess"}]}, "phase 1: method must be one of"),
        (MEAN | {"phase": [{"method": "polish"}]}, "nothing to go on from"),
        (MEAN | {"phase": [{"method": "search", "size": 5}]}, "ends with size 5"),
        (MEAN | {"phase": [{"method": "search", "size": 5}, {"method": "escape"}]}, "from size 5"),
        (with_phase(method="polish", iterations=0), "phase 2: iterations must be an integer >= 1"),
        (with_phase(method="polish", starts=3), "phase 2 \\(polish\\): unknown key 'starts'"),
        (with_phase(method="polish", exponent=float("nan")), "exponent must be a finite number"),
        (with_phase(method="escape", spread=[0.3]), "spread must be a pair"),
        (with_phase(method="escape", spread=[0.3, 0.1]), "in this order"),
        (with_phase(method="escape", spread=[0.1, float("nan")]), "spread must be a finite number"),
        (with_phase(method="escape", steps=True), "steps must be an integer"),
        (with_phase(method="escape", schedule="fast"), "phase 2: schedule must be one of"),
        (with_phase(method="escape", schedule=3), "phase 2: schedule must be"),
        (with_phase(method="escape", schedule={"rate": 0.1}), "schedule must have all of"),
        (with_phase(method="escape", schedule={"speed": 0.1}), "unknown key 'speed'"),
        (
            with_phase(
                method="escape",
                schedule={"rate": float("nan"), "smoothing": [1, 1], "exponent": [1, 1], "settled": 1},
            ),
            "phase 2: rate must be a finite number > 0, got nan",
        ),
        (with_phase(method="composite"), "'parts' is missing"),
        (with_phase(method="composite", parts=[1]), "at least two stages"),
        (with_phase(method="composite", parts=[1, 2]), "part 2 is not the number of an earlier phase"),
        (with_phase(method="composite", parts=[1, ""]), "parts must be"),
        (with_phase(method="refine", weight_bits=60), "weight_bits must be"),
        (with_phase(method="joint", interior="yes"), "interior must be True or False"),
        (with_phase(method="refine", weight_bits=8) | {"kind": "direct"}, "weight_bits is about two-sided"),
        (with_phase(method="joint") | {"kind": "one-sided"}, "not one-sided"),
        (MEAN | {"phase": [*with_phase(method="joint")["phase"], {"method": "polish"}]}, "needs a square B"),
    ],
    ids=str,
)
def test_bad_jobs_are_refused(table, message):
    with pytest.raises(ParameterError, match=message):
        parse_job(table)


def test_files_are_refused_by_name(tmp_path):
    path = tmp_path / "job.toml"
    for data, message in (
        (b"size = ", "is not TOML"),
        (b"\xff", "is not TOML"),
        (b"size = nan\nobjective = 'max'", "size must be an integer"),
        (b"#" * (1 << 20) + b"#", "larger than a megabyte"),
    ):
        path.write_bytes(data)
        with pytest.raises(ParameterError, match=message) as caught:
            read_job(path)
        assert "job.toml" in str(caught.value)
    with pytest.raises(ParameterError, match="cannot be read"):
        read_job(tmp_path / "none.toml")


def test_only_limits_may_change_between_two_parts_of_a_run():
    job = parse_job(MEAN)
    assert job.same_work(parse_job(MEAN | {"seconds": 5, "devices": 1, "checkpoint_seconds": 1}))
    assert not job.same_work(parse_job(MEAN | {"seed": 1}))


def test_estimates_follow_the_phases():
    small, large = (estimate_job(parse_job(MEAN | {"size": size})) for size in (512, 1024))
    assert large.memory_bytes == 4 * small.memory_bytes
    assert large.memory_bytes < 2**31
    assert 4 * small.seconds < large.seconds < 9 * small.seconds
    assert estimate_job(parse_job(MEAN | {"size": 1024, "seconds": 60})).seconds == 60
    assert set(METHODS) == {"search", "refine", "escape", "polish", "composite", "joint"}
