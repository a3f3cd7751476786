"""``trilift count``. With epsilon = 1e6 the noise rounds to zero (with failures far below 1e-1000), so that
released values are the true sums and show what was counted.
"""

import json
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trilift.counting
from hypothesis import given
from hypothesis import strategies as st
from trilift import Counter
from trilift.artifacts import find, save
from trilift.counters.durable import DurableCounter
from trilift.counters.lock import exclusive
from trilift.counting import value_text
from trilift.output import ClosedPipeError

Run = Callable[..., Any]


EXACT = ("--epsilon", "1e6", "--quiet")
WARNING = "trilift: warning: without --state"
LARGE = "trilift: warning: epsilon is above 20, which protects little"


def test_plain_lines(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\n0\n1\n1\n")
    done = run("count", "a.txt", "--horizon", 4, *EXACT)
    assert (done.code, done.out) == (0, "1\n1\n2\n3\n")
    large, unsaved = done.err.splitlines()
    assert large == LARGE
    assert unsaved.startswith(WARNING)


def test_standard_input_and_out(run: Run, tmp_path: Path) -> None:
    done = run("count", "-", "-n", 4, *EXACT, "--out", "o.txt", stdin=b"1\n1\n")
    assert (done.code, done.out) == (0, "")
    assert (tmp_path / "o.txt").read_text() == "1\n2\n"


def test_csv_in_gives_csv_out(run: Run) -> None:
    done = run("count", "-", "-n", 4, *EXACT, "--column", "late", stdin=b"day,late\n1,1\n2,1\n")
    assert (done.code, done.out) == (0, "step,released\n1,1\n2,2\n")


def test_json_lines(run: Run) -> None:
    done = run("count", "-", "-n", 4, *EXACT, "--json", stdin=b"1\n1\n")
    assert [json.loads(line) for line in done.out.splitlines()] == [
        {"step": 1, "released": 1},
        {"step": 2, "released": 2},
    ]


def test_statement_and_summary_go_to_standard_error(run: Run) -> None:
    done = run("count", "-", "-n", 4, "-e", "0.1", stdin=b"1\n1\n")
    assert len(done.values) == 2
    assert "epsilon = 1/10" in done.err
    summary = done.err.splitlines()[-1]
    counter = Counter(Fraction(1, 10), horizon=4)
    assert summary == (
        "Released 2 values, up to step 2 of 4; the standard deviation of the last one is "
        f"{counter.sd(2):.6g}, its 95 % interval is ± {counter.interval(2):.6g}."
    )
    assert 1.5 * counter.sd(2) < counter.interval(2) < 3 * counter.sd(2)


def test_a_running_maximum_has_no_interval_of_one_step(run: Run) -> None:
    done = run("count", "-", "-n", 4, "-e", "0.1", "--postprocess", "monotone", stdin=b"1\n")
    assert "the standard deviation of the last one is" in done.err
    assert "interval" not in done.err


@pytest.mark.parametrize(("epsilon", "warned"), [("20", False), ("20.01", True)])
def test_a_large_epsilon_is_warned_of(run: Run, epsilon: str, warned: bool) -> None:
    done = run("count", "-", "-n", 4, "-e", epsilon, "-q", "--state", "s.json", stdin=b"1\n")
    warning = "trilift: warning: epsilon is above 20, which protects little\n"
    assert (done.code, done.err) == (0, warning if warned else "")


@pytest.mark.parametrize("size", [1, 4096, 70_000])
def test_many_lines(run: Run, size: int) -> None:
    """Several chunks and batches: every line counts exactly once."""
    inputs = np.random.default_rng(5).integers(0, 2, size)
    text = "".join(f"{x}\n" for x in inputs).encode()
    done = run("count", "-", "-n", size, *EXACT, stdin=text)
    assert done.code == 0
    assert done.values == np.cumsum(inputs).tolist()


def test_bounds_clip_and_contributions(run: Run) -> None:
    options = ("--bounds", -2, 5, "--max-contributions", 3)
    assert run("count", "-", "-n", 9, *EXACT, *options, stdin=b"-2\n5\n").values == [-2, 3]
    clipped = run("count", "-", "-n", 9, *EXACT, *options, "--clip", stdin=b"-9\n99999999999999999999999\n")
    assert clipped.values == [-2, 3]


def test_bounds_beyond_machine_words(run: Run) -> None:
    huge = 10**25
    done = run(
        "count", "-", "-n", 4, "-e", "1e40", "-q", "--bounds", 0, huge, stdin=f"{huge}\n{huge}\n".encode()
    )
    assert done.values == [huge, 2 * huge]


def test_decimal_inputs_on_a_lattice(run: Run) -> None:
    done = run("count", "-", "-n", 4, *EXACT, "--resolution", "1/4", stdin=b"0.25\n0.6\n1\n")
    assert done.out == "0.25\n0.75\n1.75\n"  # 0.6 is rounded to 0.5
    wide = ("--resolution", "1/4", "--bounds", "0", 2**60)
    done = run("count", "-", "-n", 4, "-e", "1e40", "-q", *wide, stdin=f"{2**60 - 1}.75\n".encode())
    assert done.out == f"{2**60 - 1}.75\n"


def test_lines_before_a_bad_one_are_released(run: Run) -> None:
    done = run("count", "-", "-n", 9, *EXACT, stdin=b"1\n0\n777x\n1\n")
    assert (done.code, done.values) == (2, [1, 1])
    assert done.err.splitlines()[-1] == "trilift: line 3: not an integer; values released: 2"
    assert "777" not in done.err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0.25", "not an integer (for decimals: --resolution 1/128)"),
        ("1.0", "not an integer (write whole numbers without point and exponent, or take decimals: "),
        ("1e3", "not an integer (write whole numbers without point and exponent, or take decimals: "),
        ("True", "not an integer (for truth values, write 1 and 0)"),
        ("false", "not an integer (for truth values, write 1 and 0)"),
        ("NA", "not an integer;"),
    ],
)
def test_what_to_do_about_a_line(run: Run, text: str, why: str) -> None:
    done = run("count", "-", "-n", 9, *EXACT, stdin=f"1\n{text}\n".encode())
    assert (done.code, done.values) == (2, [1])
    assert done.err.splitlines()[-1].startswith(f"trilift: line 2: {why}")


def test_a_truth_value_is_no_decimal_either(run: Run) -> None:
    done = run("count", "-", "-n", 9, *EXACT, "--resolution", "1/4", stdin=b"true\n")
    assert "line 1: not a decimal number (for truth values, write 1 and 0)" in done.err


def test_refusals_do_not_repeat_data(run: Run) -> None:
    done = run("count", "-", "-n", 9, *EXACT, stdin=b"1\n5\n")
    assert done.err.splitlines()[-1] == (
        "trilift: line 2: outside the bounds [0, 1] (see --bounds and --clip); values released: 1"
    )


@pytest.mark.parametrize(
    ("options", "text", "why"),
    [
        (("-n", 9), "1\n0\nx\n", "line 3: not an integer"),
        (("-n", 9), "1\n5\n", "line 2: outside the bounds [0, 1] (see --bounds and --clip)"),
        (("-n", 2), "1\n1\n1\n", "line 3: past the horizon 2"),
        (("-n", 9, "--column", "a"), "a,b\n1\n", "line 2: 1 field, but the header has 2"),
        (("-n", 9, "--column", "a"), "a,b\n1,2,3\n", "line 2: 3 fields, but the header has 2"),
        (("-n", 9, "--chain", "direct-max-4"), "1\n", "horizon 9 is past the capacity 4"),
        (("-n", 9), "", "the input holds no numbers"),
    ],
)
def test_checking_finds_what_counting_would_refuse(
    refused: Run, options: tuple[object, ...], text: str, why: str
) -> None:
    Path("a.txt").write_text(text)
    assert why in str(refused("count", "a.txt", *options, "--check"))


@pytest.mark.parametrize(("text", "rows"), [("1\n", "1 row, fine\n"), ("1\n0\n\n", "2 rows, fine\n")])
def test_checking_releases_and_saves_nothing(run: Run, text: str, rows: str) -> None:
    Path("a.txt").write_text(text)
    before = set(Path().iterdir())
    done = run("count", "a.txt", "-n", 9, "-e", 1, "--state", "s.json", "--out", "o.txt", "--check")
    assert (done.code, done.out, done.err) == (0, rows, "")
    assert set(Path().iterdir()) == before
    assert run("count", "a.txt", "-n", 9, "--check", "--json").json == {"rows": int(rows[0])}


def test_checking_what_follows_a_state(run: Run) -> None:
    """Against the steps that are left, and the state's own bounds, whatever its epsilon."""
    Counter(2, horizon=3, bounds=(0, 5)).save("s.json")
    assert run("count", "-", "-q", "--state", "s.json", stdin=b"5\n").code == 0
    before = Path("s.json").read_bytes()
    done = run("count", "-", "--state", "s.json", "--check", stdin=b"5\n5\n")
    assert (done.code, done.out) == (0, "2 rows, fine\n")
    done = run("count", "-", "--state", "s.json", "--check", stdin=b"5\n5\n5\n")
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[-1] == "trilift: line 3: past the horizon 3"
    assert Path("s.json").read_bytes() == before


def test_a_refused_line_of_a_file_names_the_check(run: Run) -> None:
    Path("a.txt").write_text("1\nx\n")
    done = run("count", "a.txt", "-n", 9, *EXACT)
    end = "line 2: not an integer; values released: 1 (check with --check first)"
    assert done.err.splitlines()[-1] == f"trilift: {end}"
    Path("b.txt").write_text("x\n")
    assert run("count", "b.txt", "-n", 9, *EXACT).err.endswith("values released: 0\n")


@pytest.mark.parametrize(
    ("chain", "why"),
    [
        (["direct-max-4"], "horizon 100 is past the capacity 4 of the chain: add a direct-... artifact"),
        (["stage-max-9"], "--chain stage-max-9: the last one must be a plain factorisation: add a direct-"),
    ],
)
def test_a_chain_that_does_not_do_names_the_remedy(refused: Run, chain: list[str], why: str) -> None:
    options = [word for name in chain for word in ("--chain", name)]
    message = str(refused("count", "-", "-n", 100, "-e", "1/3", *options, stdin=b"1\n"))
    assert why in message
    assert message.endswith(f"(see: trilift plan -n 100 -e 1/3 --artifact {chain[0]})")


def test_the_horizon_ends_the_count(run: Run) -> None:
    done = run("count", "-", "-n", 2, *EXACT, stdin=b"1\n1\n1\n1\n")
    assert (done.code, done.values) == (2, [1, 2])
    assert done.err.splitlines()[-1] == "trilift: line 3: past the horizon 2; values released: 2"


@pytest.mark.parametrize("data", [b"", b"\n", b"\xef\xbb\xbf"])
def test_empty_input(run: Run, data: bytes) -> None:
    done = run("count", "-", "-n", 2, "-e", 1, "-q", "--state", "s.json", stdin=data)
    assert (done.code, done.out, done.err) == (2, "", "trilift: the input holds no numbers\n")
    assert not Path("s.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.txt", "-n", 2, "-e", 1), "none.txt: No such file or directory"),
        (("-", "-n", 2), "--epsilon is needed"),
        (("-", "-e", 1), "--horizon is needed, or --unbounded"),
        (("-", "-e", 1, "--state", "s.json"), "or --unbounded (there is no saved state s.json yet)"),
        (("-", "-n", 2, "-e", "nan"), "epsilon must be a finite number > 0, got 'nan'"),
        (("-", "-n", 2, "-e", "1_0"), "epsilon must be a finite number > 0, got '1_0'"),
        (("-", "-n", 0, "-e", 1), "horizon must be an integer >= 1, got 0"),
        (
            ("-", "-n", 2, "-e", 1, "--objective", "best"),
            "objective must be one of 'max', 'mean', got 'best'",
        ),
        (("-", "-n", 2, "-e", 1, "--bounds", 1, 0), "bounds must be a pair with low < high"),
        (("-", "-n", 2, "-e", 1, "--resolution", "0.01"), "power of two, such as 1/128, got 1/100"),
        (("-", "-n", "1e5", "-e", 1), "horizon must be an integer, such as 100000, got '1e5'"),
        (
            ("-", "-n", 2, "-e", 1, "--chain", "nothing"),
            "nothing: neither a file nor an artifact of the catalogue",
        ),
        (("-", "-n", 2, "-e", 1, "--column", "a", "--delimiter", "ab"), "delimiter must be one character"),
        (("-", "-n", 2, "-e", 1, "--state", "no/s.json"), "no/s.json"),
        (("-", "-n", 2, "-e", 1, "--out", "catalogue"), "--out catalogue exists already"),
        (("-", "-n", 2, "-e", 1, "--out", "no/o"), "--out no/o: the folder no does not exist"),
    ],
)
def test_bad_arguments(refused: Run, arguments: tuple[object, ...], message: str) -> None:
    assert message in str(refused("count", *arguments, stdin=b"1\n"))


def test_a_state_continues_as_if_never_interrupted(run: Run) -> None:
    """Two files with the same counter: one takes the stream at once, one in three parts."""
    Counter(1, horizon=60).save("whole.json")
    Path("parts.json").write_bytes(Path("whole.json").read_bytes())
    text = [b"1\n0\n1\n" * 5, b"1\n", b"0\n1\n" * 8]
    whole = run("count", "-", "-q", "--state", "whole.json", stdin=b"".join(text))
    parts = [run("count", "-", "-q", "--state", "parts.json", stdin=part) for part in text]
    assert whole.code == 0
    notes = [
        f"trilift: continuing after step {step}: the input must hold what follows\n" for step in (0, 15, 16)
    ]
    assert (whole.err, [part.err for part in parts]) == (notes[0], notes)
    assert "".join(part.out for part in parts) == whole.out
    counter = Counter.load("parts.json")
    assert counter.step == len(whole.values) == 32
    assert counter.update(1, step=32) == whole.values[-1]


def test_a_new_state_is_private_and_complete(run: Run) -> None:
    done = run("count", "-", "-n", 9, "-e", "1/3", "-q", "--state", "kept", stdin=b"1\n0\n")
    assert done.code == 0
    assert stat.S_IMODE(os.stat("kept").st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in Path("kept").iterdir()} == {0o600}
    with DurableCounter.open("kept") as counter:
        assert (counter.step, counter.horizon, counter.epsilon) == (2, 9, Fraction(1, 3))
    options = ("-n", 9, "-e", "1/3", "-q", "--state", "kept", "--following", "--json")
    assert json.loads(run("count", "-", *options, stdin=b"1\n").out)["step"] == 3


@pytest.mark.parametrize(
    "option",
    [
        ("--epsilon", 2),
        ("--horizon", 8),
        ("--objective", "mean"),
        ("--bounds", 0, 2),
        ("--clip",),
        ("--resolution", "1/2"),
        ("--max-contributions", 2),
        ("--chain", "direct-max-16"),
        ("--postprocess", "monotone"),
    ],
)
def test_options_that_contradict_the_state(refused: Run, option: tuple[object, ...]) -> None:
    Counter(1, horizon=9).save("s.json")
    before = Path("s.json").read_bytes()
    message = refused("count", "-", "-q", "--state", "s.json", *option, stdin=b"1\n")
    assert f"{option[0]} differs from that of the saved state s.json" in str(message)
    assert Path("s.json").read_bytes() == before


def test_out_is_continued_with_the_state(run: Run) -> None:
    """A state that is a single file: it gets what follows, and so does the output."""
    options = ("--state", "s.json", "--out", "o.csv", "--column", "x")
    Counter(10**6, horizon=9).save("s.json")
    run("count", "-", "-q", *options, stdin=b"x\n1\n1\n")
    done = run("count", "-", "-q", *options, stdin=b"x\n1\n")
    assert done.code == 0
    assert Path("o.csv").read_text() == "step,released\n1,1\n2,2\n3,3\n"


def test_the_state_is_saved_before_values_are_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(text: str, **_: object) -> None:
        raise ClosedPipeError

    monkeypatch.setattr(trilift.counting, "write", gone)
    Counter(1, horizon=9).save("s.json")
    done = run("count", "-", "-q", "--state", "s.json", stdin=b"1\n1\n1\n")
    assert (done.code, done.out) == (141, "")
    assert Counter.load("s.json").step == 3
    done = run("count", "-", "-n", 9, "-e", 1, "-q", "--state", "kept", stdin=b"1\n1\n1\n")
    assert (done.code, done.out) == (141, "")
    with DurableCounter.open("kept") as counter:
        assert counter.step == 3


def test_a_bad_line_leaves_the_state_at_the_line_before(run: Run) -> None:
    done = run("count", "-", "-n", 9, *EXACT, "--state", "kept", stdin=b"1\n1\nx\n")
    assert done.code == 2
    with DurableCounter.open("kept") as counter:
        assert counter.step == 2


def test_a_state_is_not_continued_twice_at_once(refused: Run) -> None:
    Counter(1, horizon=9).save("s.json")
    with exclusive(Path("s.json")):
        message = refused("count", "-", "-q", "--state", "s.json", stdin=b"1\n")
    assert "in use by another process" in str(message)


def test_a_state_keeps_whole_paths(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    save(find("direct-max-4"), "mine.npz")
    options = ("--state", Path("s.json").resolve(), "--chain", "mine.npz", "-q")
    assert run("count", "-", "-n", 4, "-e", 1, *options, stdin=b"1\n").code == 0
    assert run("count", "-", *options, stdin=b"1\n").code == 0
    monkeypatch.chdir("catalogue")
    assert run("count", "-", *options[:2], "-q", stdin=b"1\n").code == 0


def test_an_unproved_artifact_is_not_counted_with(run: Run) -> None:
    artifact = find("direct-max-4")
    low = replace(artifact.certificate, sensitivity=artifact.certificate.sensitivity / 2)
    save(replace(artifact, certificate=low), "false.npz")
    done = run("count", "-", "-n", 4, *EXACT, "--chain", "false.npz", "--state", "s.json", stdin=b"1\n")
    assert (done.code, done.out) == (1, "")
    assert "false.npz: not verified: sensitivity <=" in done.err
    assert not Path("s.json").exists()
    Path("catalogue/false.npz").write_bytes(Path("false.npz").read_bytes())
    assert run("count", "-", "-n", 4, *EXACT, "--chain", "false", stdin=b"1\n").code == 1


def test_a_simulation_is_called_one(run: Run) -> None:
    Counter(1, horizon=4, simulation_seed=1).save("s.json")
    done = run("count", "-", "-q", "--state", "s.json", stdin=b"1\n")
    assert done.err == (
        "trilift: continuing after step 0: the input must hold what follows\n"
        "trilift: warning: the state belongs to a simulation: what is released protects nobody\n"
    )


def test_damaged_and_foreign_states(refused: Run) -> None:
    Path("s.json").write_text("{}")
    assert "not a counter state" in str(refused("count", "-", "-q", "--state", "s.json", stdin=b"1\n"))
    Counter(1, horizon=9, dimension=2).save("v.json")
    assert "a counter of vectors" in str(refused("count", "-", "-q", "--state", "v.json", stdin=b"1\n"))


@given(st.integers(-(2**80), 2**80), st.integers(0, 70))
def test_value_text_loses_nothing(num: int, places: int) -> None:
    value = Fraction(num, 1 << places)
    text = value_text(value)
    assert Fraction(text) == value
    assert "e" not in text
