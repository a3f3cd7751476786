"""``trilift plot``: what is drawn is what is planned, and bad input ends before anything is written."""

import functools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trilift.commands import plan
from trilift.curves import MECHANISMS, planned
from trilift.lift.mechanisms import NAMES, price

Run = Callable[..., Any]

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True, scope="module")
def one_catalogue() -> Iterator[None]:
    """Load the shipped artifacts once, not for every command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "catalogued", functools.cache(plan.catalogued))
        yield


STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("form", sorted(STARTS))
def test_formats(run: Run, form: str) -> None:
    done = run("plot", "time", "-n", 100, "--mechanism", "kary", "--out", f"p.{form}")
    assert (done.code, done.out, done.err) == (0, "", f"Drawn: p.{form}\n")
    data = Path(f"p.{form}").read_bytes()
    assert data.startswith(STARTS[form])
    again = run("plot", "time", "-n", 100, "--mechanism", "kary", "--out", f"again.{form}")
    assert again.code == 0
    assert Path(f"again.{form}").read_bytes() == data


@pytest.mark.parametrize("arguments", [("stage-max-9",), ("stage-mean-9", "-n", 30), ("direct-max-8",)])
def test_factors(run: Run, arguments: tuple[object, ...]) -> None:
    done = run("plot", "factors", *arguments, "--out", "f.svg")
    assert done.code == 0
    assert len(Path("f.svg").read_bytes()) > 10_000


def test_curves_over_time(run: Run) -> None:
    """One for every combination; their largest values are the planned ones."""
    options = [
        "-n",
        64,
        "--mechanism",
        "kary",
        "--mechanism",
        "honaker",
        "-e",
        1,
        "-e",
        "1/2",
        "--out",
        "t.png",
    ]
    curves = run("plot", "time", *options, "--json").json
    assert [curve["label"] for curve in curves] == [
        "kary, ε = 1",
        "kary, ε = 1/2",
        "honaker, ε = 1",
        "honaker, ε = 1/2",
    ]
    for curve, (name, epsilon) in zip(
        curves, [("kary", 1.0), ("kary", 0.5), ("honaker", 1.0), ("honaker", 0.5)], strict=True
    ):
        assert curve["steps"] == list(range(1, 65))
        expected = math.sqrt(price(name, 64).max_se(epsilon) or 0)
        assert max(curve["sd"]) == pytest.approx(expected, rel=1e-12)


def test_curves_of_counters() -> None:
    """Of our chain the worst step is that of the plan; of the others, each is the counter's own."""
    from trilift import Counter, GaussianCounter

    names = ["trilift", "unbounded", "gaussian"]
    plans = planned(
        names, epsilons=[Fraction(1, 2)], horizons=[200], objectives=["mean"], delta=Fraction(1, 10**6)
    )
    ours, endless, gaussian = (one.curve("") for one in plans)
    worst, mean = plans[0].errors()
    assert worst is not None
    assert mean is not None
    assert (ours.sd**2).max() == pytest.approx(worst, rel=1e-9)
    assert (ours.sd**2).mean() == pytest.approx(mean, rel=1e-9)
    counter = Counter(Fraction(1, 2), horizon=None, objective="mean")
    other = GaussianCounter(Fraction(1, 2), Fraction(1, 10**6), horizon=200, objective="mean")
    for step in (1, 77, 200):
        assert endless.sd[step - 1] == pytest.approx(counter.sd(step))
        assert gaussian.sd[step - 1] == pytest.approx(other.sd(step))


def test_errors_against_epsilon_and_horizon(run: Run) -> None:
    (line,) = run("plot", "epsilon", "-n", 100, "--mechanism", "kary", "--out", "e.png", "--json").json
    assert [point["epsilon"] for point in line["points"]] == [0.1, 0.3, 1.0, 3.0, 10.0]
    at_one = line["points"][2]
    for point in line["points"]:
        assert point["max_sd"] == pytest.approx(at_one["max_sd"] / point["epsilon"])
        assert point["mean_sd"] == pytest.approx(at_one["mean_sd"] / point["epsilon"])
    lines = run(
        "plot",
        "horizon",
        "-n",
        1000,
        "--mechanism",
        "kary",
        "--mechanism",
        "paper",
        "--out",
        "n.png",
        "--json",
    ).json
    assert [line["label"] for line in lines] == ["kary", "paper (bound)"]
    for line, name in zip(lines, ("kary", "paper"), strict=True):
        assert [point["horizon"] for point in line["points"]] == [16, 64, 256, 1000]
        for point in line["points"]:
            bound = price(name, int(point["horizon"])).bound_max_se()
            assert point["max_sd"] == pytest.approx(math.sqrt(bound or 0))


def test_balance(run: Run) -> None:
    points = run("plot", "balance", "-n", 500, "--mechanism", "honaker", "--out", "b.png", "--json").json
    assert [point["label"] for point in points] == [
        "honaker, chosen by max",
        "honaker, chosen by mean",
    ]
    assert points[0]["max_sd"] <= points[1]["max_sd"]
    assert points[1]["mean_sd"] <= points[0]["mean_sd"]


BAD = [
    (("time", "-n", 10, "-o", "p.jpg"), ".png, .svg or .pdf"),
    (("time", "-n", 10, "-o", "nowhere/p.png"), "does not exist"),
    (("time", "-n", "1e3", "-o", "p.png"), "such as 1000"),
    (("time", "-n", 0, "-o", "p.png"), "horizon must be"),
    (("time", "-n", 10, "-e", 0, "-o", "p.png"), "epsilon must be"),
    (("time", "-n", 10, "-e", "nan", "-o", "p.png"), "epsilon must be"),
    (("time", "-n", 10, "-e", "1e-400", "-o", "p.png"), "epsilon must be"),
    (("time", "-n", 10, "--mechanism", "no", "-o", "p.png"), "mechanism must be one of"),
    (("time", "-n", 10, "--objective", "no", "-o", "p.png"), "objective must be"),
    (("time", "-n", 10, "--mechanism", "paper", "-o", "p.png"), "only norms are published"),
    (("time", "-n", 10, "--mechanism", "gaussian", "-o", "p.png"), "needs --delta"),
    (("time", "-n", 10, "--mechanism", "kary", "--delta", "1e-6", "-o", "p.png"), "about Gaussian noise"),
    (("time", "-n", 10, "--mechanism", "kary", "--artifact", "x.npz", "-o", "p.png"), "about chains"),
    (("time", *(f"-n{n}" for n in range(1, 30)), "-o", "p.png"), "too many"),
    (("balance", "-n", 99, "--mechanism", "paper", "-o", "p.png"), "is not known"),
    (("factors", "no-such-artifact", "-o", "p.png"), "neither a file nor"),
    (("factors", "direct-max-8", "-n", 9, "-o", "p.png"), ""),
    (("factors", "direct-max-8", "-n", 99999, "-o", "p.png"), "horizon must be"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "said"), BAD, ids=lambda value: None)
def test_bad_input(refused: Callable[..., str], arguments: tuple[object, ...], said: str) -> None:
    assert said in refused("plot", *arguments)
    assert not list(Path().glob("p.*"))


def test_a_file_that_exists_is_left_alone(refused: Callable[..., str]) -> None:
    Path("p.png").write_bytes(b"mine")
    assert "exists already" in refused("plot", "time", "-n", 10, "-o", "p.png")
    assert Path("p.png").read_bytes() == b"mine"


def test_without_matplotlib(refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for command in (
        ["plot", "time", "-n", 10, "-o", "p.png"],
        ["plan", "-n", 10, "-e", 1, "--html", "p.html"],
    ):
        assert "pip install 'trilift[plot]'" in refused(*command)
    assert not list(Path().glob("p.*"))


def test_every_mechanism_has_a_curve() -> None:
    names = [name for name in MECHANISMS if name not in ("paper", "trilift")]
    assert set(names) >= set(NAMES) - {"paper"}
    plans = planned(names, epsilons=[Fraction(1)], horizons=[40], objectives=["max"], delta=Fraction(1, 1000))
    for one in plans:
        curve = one.curve(one.label())
        assert curve.sd.shape == (40,)
        assert np.isfinite(curve.sd).all()
        assert (curve.sd > 0).all()
