"""``trilift count`` with Gaussian noise, without a horizon, with SimECC and ECC: made, saved, continued."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trilift import Counter, GaussianCounter
from trilift.counters.durable import DurableCounter
from trilift.counters.edit.mechanism import ECC, SimECC

Run = Callable[..., Any]

DELTA = Fraction(1, 10**6)


def made(name: str) -> Any:
    """One counter of each kind."""
    makers: dict[str, Callable[[], Any]] = {
        "unbounded": lambda: Counter(1, horizon=None),
        "gaussian": lambda: GaussianCounter(1, DELTA, horizon=400),
        "toeplitz": lambda: GaussianCounter(1, DELTA, horizon=400, mechanism="toeplitz"),
        "unbounded gaussian": lambda: GaussianCounter(1, DELTA),
        "simecc": lambda: SimECC(20, DELTA, horizon=400),
        "ecc": lambda: ECC(20, DELTA, horizon=400, resolution=Fraction(1, 4)),
        "unbounded simecc": lambda: SimECC(20, DELTA, display="extrapolated"),
    }
    return makers[name]()


KINDS = ["unbounded", "gaussian", "toeplitz", "unbounded gaussian", "simecc", "ecc", "unbounded simecc"]
EDIT_KINDS = KINDS[4:]


def text_of(items: list[int], *, edit: bool) -> bytes:
    return "".join("null\n" if edit and item < 0 else f"{max(item, 0)}\n" for item in items).encode()


@pytest.mark.parametrize("name", KINDS)
def test_a_state_of_every_kind_is_continued(run: Run, name: str) -> None:
    """In three parts, with the values that the counter itself gives; the file must hold what follows."""
    counter = made(name)
    counter.save("s.json")
    edit = name in EDIT_KINDS
    items = np.random.default_rng(3).integers(-1, 2, 300).tolist()
    out: list[str] = []
    for part in (items[:1], items[1:150], items[150:]):
        done = run("count", "-", "-q", "--state", "s.json", stdin=text_of(part, edit=edit))
        assert done.code == 0, done.err
        out += done.out.split()
    inputs: Any = [None if item < 0 else item for item in items] if edit else np.maximum(items, 0)
    assert [Fraction(value) for value in out] == [
        Fraction(value) for value in counter.extend(inputs).tolist()
    ]


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("unbounded", ("--horizon", 9)),
        ("gaussian", ("--unbounded",)),
        ("gaussian", ("--delta", "1e-5")),
        ("gaussian", ("--mechanism", "toeplitz")),
        ("simecc", ("--mechanism", "ecc")),
        ("simecc", ("--rate", "1/4")),
        ("simecc", ("--display", "extrapolated")),
        ("simecc", ("--delta", "1e-5")),
        ("unbounded simecc", ("--horizon", 9)),
    ],
)
def test_options_that_contradict_the_state(refused: Run, name: str, option: tuple[object, ...]) -> None:
    made(name).save("s.json")
    message = refused("count", "-", "-q", "--state", "s.json", *option, stdin=b"1\n")
    assert f"{option[0]} differs from that of the saved state s.json" in str(message)


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        (("--unbounded",), Counter, "two streams of any length"),
        (("--delta", "1e-6", "-n", 50), GaussianCounter, "delta = 1/1000000"),
        (("--delta", "1e-6", "--unbounded"), GaussianCounter, "two streams of any length"),
        (("--delta", "1e-6", "-n", 50, "--mechanism", "toeplitz"), GaussianCounter, "Toeplitz"),
        (
            ("--neighbours", "edit", "--delta", "1e-6", "-n", 5000),
            SimECC,
            "What it will do: Cuts the stream into buckets of about",
        ),
        (
            ("--neighbours", "edit", "--delta", "1e-6", "-n", 5000, "--mechanism", "ecc", "--rate", "1/8"),
            ECC,
            "no update before about",
        ),
        (
            ("--neighbours", "edit", "--delta", "1e-6", "--unbounded"),
            SimECC,
            "streams of any number of steps",
        ),
    ],
)
def test_what_is_begun_and_said(run: Run, options: tuple[object, ...], kind: Any, said: str) -> None:
    done = run("count", "-", "-e", 2, *options, "--state", "kept", stdin=b"1\n0\n")
    assert (done.code, len(done.values)) == (0, 2)
    assert said in done.err
    assert "epsilon = 2" in done.err
    with DurableCounter.open("kept") as counter:
        assert (counter.kind, counter.step, counter.epsilon) == (kind.__name__, 2, 2)


def test_edit_statements_name_relation_and_budget(run: Run) -> None:
    done = run("count", "-", "--neighbours", "edit", "-e", 3, "--delta", "1e-6", "-n", 5000, stdin=b"1\n")
    first, second = done.err.splitlines()[:2]
    assert first.startswith("Neighbours: edit: two streams of 5000 steps")
    assert "with epsilon = 3, delta = 1e-06." in second
    assert re.search(r"^spent: epsilon 3 \(3\), ln delta -13\.8", done.err, re.MULTILINE)


def test_refusals_of_edit_states_do_not_repeat_data(run: Run) -> None:
    SimECC(20, DELTA, horizon=400).save("s.json")
    done = run("count", "-", "-q", "--state", "s.json", stdin=b"1\n77\n")
    assert done.code == 2
    assert "77" not in done.err
    assert SimECC.load("s.json").step == 1


KILLED = """
import signal, os, sys
import trilift.counting as counting
from trilift.cli import main
real, seen = counting.write, [0]

def write(text, *, file=None):
    seen[0] += 1
    if seen[0] == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    real(text, file=file)

counting._BATCH = 100
counting.write = write
main(["count", "in.txt", "-q", "--state", "s.json", "--out", "o.txt"])
"""


@pytest.mark.parametrize("name", ["gaussian", "simecc", "ecc"])
def test_a_killed_count_goes_on_where_its_state_stands(run: Run, name: str) -> None:
    """The kill hits between saving and writing: that batch is spent, and is asked for again by its steps."""
    counter = made(name)
    counter.save("s.json")
    edit = name in EDIT_KINDS
    items = np.random.default_rng(4).integers(-1, 2, 300).tolist()
    Path("in.txt").write_bytes(text_of(items, edit=edit))
    done = subprocess.run([sys.executable, "-c", KILLED], check=False, capture_output=True)
    assert done.returncode == -9, done.stderr
    loaded = type(counter).load("s.json")
    assert loaded.step == 200
    assert len(Path("o.txt").read_text().split()) == 100
    inputs: list[Any] = [None if edit and item < 0 else max(item, 0) for item in items]
    expected = counter.extend(inputs).tolist()
    lost = [loaded.update(inputs[step], step=step + 1) for step in range(100, 200)]
    assert lost == expected[100:200]
    rest = run("count", "-", "-q", "--state", "s.json", "--json", stdin=text_of(items[200:], edit=edit))
    assert [json.loads(line)["released"] for line in rest.out.splitlines()] == expected[200:]
