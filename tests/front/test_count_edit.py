"""``trilift count --neighbours edit``: which cells are "no event", what contradicts itself, and states.

A Gaussian counter with epsilon = 10^6 and delta = 0.1 has noise that rounds to zero in short streams (its sd
is below 0.003), which shows what was counted.
"""

import json
import stat
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trilift.counting
from trilift.counters.edit.gaussian_cc import GaussianCC, HorizonGaussian
from trilift.output import ClosedPipeError

Run = Callable[..., Any]

EDIT = ("--neighbours", "edit")
GAUSSIAN = (*EDIT, "--mechanism", "gaussian")
EXACT = (*GAUSSIAN, "--epsilon", "1e6", "--delta", "0.1", "--quiet")


def test_an_empty_cell_is_no_event(run: Run) -> None:
    """It takes a step and adds nothing."""
    done = run(
        "count", "-", "-n", 9, *EXACT, "--column", "late", stdin=b'day,late\n1,1\n2,\n3,0\n4,""\n5,1\n'
    )
    assert (done.code, done.out) == (0, "step,released\n1,1\n2,1\n3,1\n4,1\n5,2\n")


def test_null_is_no_event_on_a_line_of_its_own(run: Run) -> None:
    done = run("count", "-", "-n", 9, *EXACT, "--json", stdin=b"1\nnull\n0\n1\n")
    values = [json.loads(line) for line in done.out.splitlines()]
    assert values == [{"step": step, "released": value} for step, value in ((1, 1), (2, 1), (3, 1), (4, 2))]


def test_no_event_is_another_input_than_zero(run: Run) -> None:
    """A step that is named again must hold the same: the state remembers which it was."""
    HorizonGaussian(1, Fraction(1, 10), horizon=9).save("s.json")
    run("count", "-", "-q", "--state", "s.json", stdin=b"null\n0\n")
    counter = HorizonGaussian.load("s.json")
    counter.update(None, step=1)
    with pytest.raises(trilift.ReplayError):
        counter.update(0, step=1)
    counter.update(0, step=2)


@pytest.mark.parametrize("neighbours", [(), ("--neighbours", "swap")])
def test_without_edit_neighbours_an_empty_cell_is_refused(run: Run, neighbours: tuple[str, ...]) -> None:
    done = run("count", "-", "-n", 9, "-e", 1, *neighbours, "--column", "x", stdin=b"x,y\n1,2\n,2\n")
    assert (done.code, done.out) == (2, "step,released\n" + done.out.splitlines()[1] + "\n")
    why = 'not an integer (an empty cell is "no event" with --neighbours edit alone)'
    assert done.err.splitlines()[-1] == f"trilift: line 3: {why}; values released: 1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*EDIT, "-n", 9, "-e", 1), "--delta is needed for edit neighbours, such as 1e-6"),
        ((*EDIT, "-e", 1, "--delta", "1e-6"), "--horizon is needed, or --unbounded"),
        ((*EDIT, "-n", 9, "--delta", "1e-6"), "--epsilon is needed"),
        ((*EDIT, "-n", 9, "-e", 1, "--delta", "1e-6", "--unbounded"), "contradict each other"),
        (("--neighbours", "near", "-n", 9, "-e", 1), "neighbours must be one of 'swap', 'edit', got 'near'"),
        ((*EDIT, "-n", 9, "-e", 1, "--delta", "2", "--mechanism", "gaussian"), "delta must be"),
        ((*EDIT, "-n", 9, "-e", 1, "--delta", "0"), "delta must be a finite number > 0, got '0'"),
        ((*EDIT, "-n", 9, "-e", 1, "--delta", "nan"), "delta must be a finite number > 0, got 'nan'"),
        (
            (*EDIT, "-n", 9, "-e", 1, "--delta", "1e-6", "--mechanism", "toeplitz"),
            "mechanism must be one of 'auto', 'simecc', 'ecc', 'gaussian' for edit neighbours, got",
        ),
        (("-n", 9, "-e", 1, "--mechanism", "simecc"), "is about edit neighbours: add --neighbours edit"),
        (
            ("-n", 9, "-e", 1, "--delta", "1e-6", "--mechanism", "best"),
            "mechanism must be one of 'chain', 'toeplitz' for swap neighbours, got 'best'",
        ),
        (("-n", 9, "-e", 1, "--mechanism", "chain"), "--delta is needed for Gaussian noise"),
        (("-n", 9, "-e", 1, "--rate", "0.1"), "--rate is of no use without --delta and --neighbours edit"),
        (
            (*GAUSSIAN, "-n", 9, "-e", 1, "--delta", "1e-6", "--rate", "0.1"),
            "--rate is of no use with --neighbours edit --mechanism gaussian: leave it out",
        ),
        (
            (*EDIT, "-n", 9, "-e", 1, "--delta", "1e-6", "--max-contributions", 2),
            "--max-contributions is of no use with --neighbours edit: leave it out",
        ),
        ((*EDIT, "-n", 9, "-e", 1, "--delta", "1e-6", "--chain", "direct-max-16"), "--chain is of no use"),
        ((*EDIT, "-n", 9, "-e", 1, "--delta", "1e-6", "--objective", "mean"), "--objective is of no use"),
        ((*EDIT, "-n", 9, "-e", 1, "--delta", "1e-6", "--postprocess", "monotone"), "--postprocess is of no"),
        (
            (*EDIT, "-n", 9, "-e", 1, "--delta", "1e-6", "--bounds", -1, 1),
            "--bounds must begin at 0 with --neighbours edit",
        ),
        ((*GAUSSIAN, "-n", 9, "-e", 1, "--delta", "1e-6", "--resolution", "0.1"), "power of two"),
        ((*EDIT, "-n", 9, "-e", 1, "--delta", "1e-6", "--state", "no/s.json"), "no/s.json"),
    ],
)
def test_bad_arguments(refused: Run, arguments: tuple[object, ...], message: str) -> None:
    assert message in str(refused("count", "-", *arguments, stdin=b"1\n"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"1\n2\n", "line 2: outside the bounds [0, 1] (see --bounds and --clip)"),
        (b"1\n-1\n", "line 2: outside the bounds [0, 1] (see --bounds and --clip)"),
        (b"1\n\n1\n", 'line 2: blank ("no event" is written null)'),
        (b"1\nnan\n", "line 2: not an integer"),
    ],
)
def test_refused_lines(run: Run, text: bytes, why: str) -> None:
    done = run("count", "-", "-n", 9, *EXACT, stdin=text)
    assert (done.code, done.values) == (2, [1])
    assert done.err.splitlines()[-1] == f"trilift: {why}; values released: 1"


def test_the_horizon_ends_the_count(run: Run) -> None:
    done = run("count", "-", "-n", 2, *EXACT, stdin=b"1\nnull\n1\n")
    assert (done.code, done.values) == (2, [1, 1])
    assert done.err.splitlines()[-1] == "trilift: line 3: past the horizon 2; values released: 2"


def test_bounds_clip_and_resolution(run: Run) -> None:
    options = ("--bounds", 0, 5, "--clip", "--resolution", "1/4")
    done = run("count", "-", "-n", 9, *EXACT, *options, stdin=b"0.6\nnull\n9\n-3\n")
    assert done.out.splitlines() == ["0.5", "0.5", "5.5", "5.5"]


def test_inputs_beyond_floats(run: Run) -> None:
    """As the counter itself counts them."""
    counter = HorizonGaussian(1, Fraction(1, 10), horizon=9, high=2**60)
    counter.save("s.json")
    text = f"{2**60 - 1}\nnull\n{2**60}\n".encode()
    done = run("count", "-", "-q", "--state", "s.json", "--bounds", 0, 2**60, stdin=text)
    assert done.code == 0, done.err
    assert done.values == [counter.update(x) for x in (2**60 - 1, None, 2**60)]


def test_checking_releases_and_saves_nothing(run: Run) -> None:
    Path("a.csv").write_text("t,x\n1,1\n2,\n3,0\n")
    before = set(Path().iterdir())
    done = run("count", "a.csv", "--column", "x", *GAUSSIAN, "-n", 9, "--state", "s.json", "--check")
    assert (done.code, done.out, done.err) == (0, "3 rows, fine\n", "")
    done = run("count", "a.csv", "--column", "x", *GAUSSIAN, "--unbounded", "--check", "--json")
    assert done.json == {"rows": 3}
    assert set(Path().iterdir()) == before
    assert run("count", "a.csv", "--column", "x", *GAUSSIAN, "-n", 2, "--check").code == 2


def test_the_guarantee_and_the_summary(run: Run) -> None:
    done = run("count", "-", "-n", 4, *GAUSSIAN, "-e", "1/2", "--delta", "1e-6", stdin=b"1\nnull\n")
    assert "Neighbours: edit: two streams of 4 steps" in done.err
    assert "with epsilon = 1/2, delta = 1e-06." in done.err
    assert "spends another 1/2 of epsilon and 1e-06 of delta" in done.err
    counter = HorizonGaussian(Fraction(1, 2), Fraction(1, 10**6), horizon=4)
    said = "the standard deviation of the last one is"
    assert done.err.splitlines()[-1] == f"Released 2 values, up to step 2 of 4; {said} {counter.sd(2):.6g}."
    done = run("count", "-", "--unbounded", *GAUSSIAN, "-e", "1/2", "--delta", "1e-6", stdin=b"1\nnull\n")
    sd = GaussianCC(Fraction(1, 2), Fraction(1, 10**6)).sd(2)
    assert done.err.splitlines()[-1] == f"Released 2 values, up to step 2; {said} {sd:.6g}."


@pytest.mark.parametrize(("delta", "warned"), [("1/1000", False), ("0.002", True)])
def test_a_large_delta_is_warned_of(run: Run, delta: str, warned: bool) -> None:
    state = ("--state", "s.json")
    done = run("count", "-", "-n", 4, *GAUSSIAN, "-e", 1, "--delta", delta, "-q", *state, stdin=b"1\n")
    warning = "trilift: warning: delta is above 0.001: with about that probability nothing is protected\n"
    assert (done.code, done.err) == (0, warning if warned else "")


def test_a_state_continues_as_if_never_interrupted(run: Run) -> None:
    """Two files with the same counter: one takes the stream at once, one in parts, into one file."""
    GaussianCC(1, Fraction(1, 10)).save("whole.json")
    Path("parts.json").write_bytes(Path("whole.json").read_bytes())
    text = [b"t,x\n1,1\n2,\n3,1\n", b"t,x\n4,\n", b"t,x\n5,1\n6,0\n"]
    stream = b"".join([text[0], *(part.split(b"\n", 1)[1] for part in text[1:])])
    whole = run("count", "-", "-q", "--column", "x", "--state", "whole.json", "--out", "w.csv", stdin=stream)
    for part in text:
        options = ("--neighbours", "edit", "--delta", "0.1", "--unbounded", "--mechanism", "gaussian")
        done = run(
            "count",
            "-",
            "-q",
            "--column",
            "x",
            "--state",
            "parts.json",
            *options,
            "--out",
            "p.csv",
            stdin=part,
        )
        assert (done.code, done.out) == (0, ""), done.err
    assert whole.code == 0
    assert Path("p.csv").read_text() == Path("w.csv").read_text()
    assert GaussianCC.load("parts.json").step == 6
    assert stat.S_IMODE(Path("parts.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "option",
    [
        ("--epsilon", 2),
        ("--delta", "0.2"),
        ("--horizon", 8),
        ("--unbounded",),
        ("--mechanism", "simecc"),
        ("--neighbours", "swap"),
        ("--bounds", 0, 2),
        ("--clip",),
        ("--resolution", "1/2"),
        ("--objective", "max"),
    ],
)
def test_options_that_contradict_the_state(refused: Run, option: tuple[object, ...]) -> None:
    HorizonGaussian(1, Fraction(1, 10), horizon=9).save("s.json")
    before = Path("s.json").read_bytes()
    message = refused("count", "-", "-q", "--state", "s.json", *option, stdin=b"1\n")
    assert f"{option[0]} differs from that of the saved state s.json" in str(message)
    assert Path("s.json").read_bytes() == before


def test_the_state_is_saved_before_values_are_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads them may be gone: the steps are spent all the same, and the next call goes on."""

    def gone(text: str, **_: object) -> None:
        raise ClosedPipeError

    GaussianCC(1, Fraction(1, 10)).save("s.json")
    with monkeypatch.context() as patched:
        patched.setattr(trilift.counting, "write", gone)
        assert run("count", "-", "-q", "--state", "s.json", stdin=b"1\nnull\n").code == 141
    again = run("count", "-", "-q", "--state", "s.json", "--json", stdin=b"1\n")
    assert json.loads(again.out)["step"] == 3


def test_damaged_and_foreign_states(refused: Run) -> None:
    Path("s.json").write_text('{"format": "trilift edit counter state", "version": 1, "kind": "Nobody"}')
    assert "does not know" in str(refused("count", "-", "-q", "--state", "s.json", stdin=b"1\n"))
    GaussianCC(1, Fraction(1, 10)).save("t.json")
    record = json.loads(Path("t.json").read_text())
    Path("t.json").write_text(json.dumps({**record, "step": 7}))
    assert "damaged" in str(refused("count", "-", "-q", "--state", "t.json", stdin=b"1\n"))


def test_many_lines(run: Run) -> None:
    """Several chunks and batches: every line counts exactly once, as the counter itself counts them."""
    items = np.random.default_rng(5).integers(-1, 2, 70_000)
    counter = HorizonGaussian(1, Fraction(1, 10), horizon=70_000)
    counter.save("s.json")
    text = "".join("null\n" if item < 0 else f"{item}\n" for item in items.tolist()).encode()
    done = run("count", "-", "-q", "--state", "s.json", stdin=text)
    assert done.values == counter.extend(np.ma.masked_less(items, 0)).tolist()
