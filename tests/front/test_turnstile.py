"""``trilift distinct`` and ``trilift f2``: which lines are events, what is refused, states, what is expected.

Released rows are compared with those of the library's own counters, simulated ones where the rows must be
known beforehand.
"""

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trilift.counting
from trilift.counters.durable import DurableCounter
from trilift.counters.turnstile import DistinctCounter, SecondMoment
from trilift.output import ClosedPipeError
from trilift.tallies_turnstile import figure

Run = Callable[..., Any]

CLASSES: dict[str, Any] = {"distinct": DistinctCounter, "f2": SecondMoment}
BOTH = pytest.mark.parametrize("command", sorted(CLASSES))
RHO = ("--rho", 1)
COLUMNS = ("--item-column", "tail", "--sign-column", "sign")
SECRET = "N0SECRET"


def rows_of(counter: Any, items: list[Any], signs: list[int]) -> list[str]:
    """What must be printed for events that the library's counter takes."""
    seen = counter.extend(items, signs)
    return [",".join(map(figure, (r.step, r.estimate, r.low, r.high))) for r in seen]


def saved(command: str, **options: Any) -> Any:
    """Save a simulated counter as s.json, and return its twin."""
    small = {} if command == "distinct" else {"rows": 5, "buckets": 4}
    options = {"rho": 1, "horizon": 100, "simulation_seed": 5, **small, **options}
    CLASSES[command](**options).save("s.json")
    return CLASSES[command](**options)


@BOTH
def test_rows_of_a_table(run: Run, command: str) -> None:
    """Spaces around items do not count, other columns neither; +1 is 1; the item is the text."""
    twin = saved(command, every=2)
    text = b'day,tail,sign\n1,N1,1\n2, N2 ,+1\n3,"7",-1\n4,N1,0\n5,,0\n'
    done = run(command, "-", *COLUMNS, "-q", "--state", "s.json", stdin=text)
    assert done.code == 0, done.err
    rows = rows_of(twin, ["N1", "N2", "7", "N1", ""], [1, 1, -1, 0, 0])
    assert done.out.splitlines() == ["step,estimate,low,high", *rows]
    assert len(rows) == 2
    again = CLASSES[command].load("s.json")
    assert again.step == 5
    assert again.update("", 0, step=5) is None  # the very event


@BOTH
def test_an_item_a_line(run: Run, command: str) -> None:
    twin = saved(command)
    done = run(command, "-", "-q", "--state", "s.json", stdin=b"\xef\xbb\xbfa b\r\n\tc \na b")
    assert done.code == 0, done.err
    assert done.out.splitlines()[1:] == rows_of(twin, ["a b", "c", "a b"], [1, 1, 1])


@BOTH
def test_several_columns_make_a_tuple(run: Run, command: str) -> None:
    twin = saved(command)
    columns = ("--item-column", "to", "--item-column", "from", "--delimiter", ";")
    done = run(command, "-", *columns, "-q", "--state", "s.json", "--json", stdin=b"from;to\nJ;L\nL;J\n")
    assert done.code == 0, done.err
    seen = [json.loads(line) for line in done.out.splitlines()]
    assert [list(row) for row in seen] == [["step", "estimate", "low", "high"]] * 2
    wanted = list(twin.extend([("L", "J"), ("J", "L")], [1, 1]))
    assert [tuple(row.values()) for row in seen] == [(r.step, r.estimate, r.low, r.high) for r in wanted]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"tail,sign\nN1,1\nN0SECRET,2\n", "line 3: the sign must be 1 (insertion), -1 (removal) or 0 (no"),
        (b"tail,sign\nN1,1\nN0SECRET,\n", "line 3: the sign must be"),
        (b"tail,sign\nN1,1\nN0SECRET,1.0\n", "line 3: the sign must be"),
        (b"tail,sign\nN1,1\nN0SECRET,N0SECRET\n", "line 3: the sign must be"),
        (b"tail,sign\nN1,1\n ,1\n", "line 3: an item is empty (a row that is no event has the sign 0)"),
        (b"tail,sign\nN1,1\nN0SECRET\n", "line 3: 1 field, but the header has 2"),
        (b"tail,sign\nN1,1\nN0SECRET,1,1\n", "line 3: 3 fields, but the header has 2"),
        (b"tail,sign\nN1,1\n\nN0SECRET,1\n", "line 3: blank"),
        (b"tail,sign\nN1,1\nN0SECRET\xff,1\n", "line 3: not UTF-8 text"),
        (b'tail,sign\nN1,1\n"N0SECRET"x,1\n', "line 3: not CSV ("),
        (b"tail,sign\nN1,1\n" + b"N0SECRET" * 17000 + b",1\n", "line 3: not CSV ("),
        (b"tail,sign\nN1,1\n" + b"N0SECRET" * 170000 + b",1\n", "line 3: longer than 1048576 bytes"),
    ],
)
def test_refused_lines(run: Run, text: bytes, why: str) -> None:
    """What stands before is released; neither it nor the rest is quoted."""
    done = run("distinct", "-", *COLUMNS, "-n", 9, *RHO, "-q", stdin=text)
    assert done.code == 2
    assert len(done.out.splitlines()) == 2
    last = done.err.splitlines()[-1]
    assert last.startswith(f"trilift: {why}")
    assert last.endswith("; values released: 1")
    assert "N1" not in done.err
    assert SECRET not in done.err


def test_nothing_after_a_refused_line_is_released(run: Run) -> None:
    text = b"tail,sign\nA,1\nB,1\nC,x\nD,1\n"
    done = run("distinct", "-", *COLUMNS, "-n", 9, *RHO, "-q", "--state", "kept", stdin=text)
    assert done.code == 2
    assert [row.split(",")[0] for row in done.out.splitlines()] == ["step", "1", "2"]
    with DurableCounter.open("kept") as counter:
        assert (counter.kind, counter.step) == ("DistinctCounter", 2)


def test_a_text_without_header_is_not_quoted(refused: Run) -> None:
    """Its first line is an item."""
    line = refused("distinct", "-", *COLUMNS, "-n", 9, *RHO, "-q", "--state", "s.json", stdin=b"N0SECRET,1\n")
    assert line == "trilift: line 1: no column of the header is named 'tail'; values released: 0"


def test_an_item_of_many_columns_may_be_too_large(run: Run) -> None:
    names = [f"c{k}" for k in range(5)]
    part = "\u20ac" * 100_000
    text = "\n".join([",".join(names), "a,b,c,d,e", ",".join(f'"{part}\n"' for _ in names), ""]).encode()
    columns = [word for name in names for word in ("--item-column", name)]
    done = run("distinct", "-", *columns, "-n", 9, *RHO, "-q", stdin=text)
    assert (done.code, len(done.out.splitlines())) == (2, 2)
    assert done.err.splitlines()[-1].startswith("trilift: line 3: items must take at most 1048576 bytes each")


@BOTH
def test_the_horizon_ends_the_count(run: Run, command: str) -> None:
    done = run(command, "-", "-n", 2, *RHO, "-q", stdin=b"a\nb\nc\n")
    assert (done.code, len(done.out.splitlines())) == (2, 3)
    assert done.err.splitlines()[-1] == "trilift: line 3: past the horizon 2; values released: 2"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-n", 9), "--rho or --epsilon is needed"),
        (("-n", 9, "--delta", "1e-6"), "--rho or --epsilon is needed"),
        (RHO, "--horizon, the number of events planned for, is needed"),
        ((*RHO, "--state", "s.json"), "is needed (there is no saved state s.json yet)"),
        (("-n", 9, *RHO, "-e", 1), "--rho and --epsilon contradict each other"),
        (("-n", 9, *RHO, "--delta", "1e-6"), "contradict each other"),
        (("-n", 9, "--rho", 0), "rho must be a finite number > 0, got '0'"),
        (("-n", 9, "--rho", "nan"), "rho must be a finite number > 0"),
        (("-n", "1e3", *RHO), "horizon must be an integer, such as 1000"),
        (("-n", 0, *RHO), "horizon must be"),
        (("-n", 9, *RHO, "--every", 10), "every must be at most the horizon 9"),
        (("-n", 9, *RHO, "--every", "1/2"), "every must be an integer"),
        (("-n", 9, *RHO, "--method", "best"), "method must be one of"),
        (("-n", 9, *RHO, "--base", "toeplitz"), "base must be one of 'auto', 'chain', 'tree'"),
        (("-n", 9, *RHO, "--failure", "0.9"), "failure must be between 1e-9 and 1/2"),
        (("-n", 9, "-e", 1, "--delta", 2), "delta must be a number between 0 and 1"),
        (("-n", 9, *RHO, "--sign-column", "sign"), "--sign-column needs an --item-column"),
        (("-n", 9, *RHO, "--item-column", "a", "--sign-column", "a "), "must name different columns"),
        (("-n", 9, *RHO, "--item-column", "a", "--item-column", "a"), "must name different columns"),
        (("-n", 9, *RHO, "--delimiter", ";;"), "delimiter must be one character"),
        (("-n", 9, *RHO, "--state", "no/s.json"), "no/s.json"),
        (("-n", 9, *RHO, "--out", "no/out.csv"), "the folder no does not exist"),
        (("-n", 9, *RHO, "--column", "x"), "No such option"),
    ],
)
def test_bad_arguments(refused: Run, arguments: tuple[object, ...], message: str) -> None:
    assert message in refused("distinct", "-", *arguments, stdin=b"a\n")


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        ("distinct", ("--accuracy", "1/2"), "No such option"),
        ("distinct", ("--few-heavy", "--method", "minhash"), "few_heavy is for method='grouped'"),
        ("distinct", ("--universe", 0), "universe must be"),
        ("f2", ("--universe", 3), "No such option"),
        ("f2", ("--method", "grouped"), "method must be one of"),
        ("f2", ("--accuracy", "2"), "accuracy must be at least 0.01 and less than 1"),
    ],
)
def test_options_of_one_command(
    refused: Run, command: str, arguments: tuple[object, ...], message: str
) -> None:
    assert message in refused(command, "-", "-n", 9, *RHO, *arguments, stdin=b"a\n")


@BOTH
def test_an_empty_input(run: Run, command: str) -> None:
    for more in ((), ("--check",), COLUMNS):
        text = b"tail,sign\n" if more is COLUMNS else b""
        done = run(command, "-", "-n", 9, *RHO, "-q", *more, stdin=text)
        assert (done.code, done.out) == (2, "")
        assert done.err.splitlines()[-1] == "trilift: the input holds no events"
    assert (
        run(command, "missing.csv", "-n", 9, *RHO).err == "trilift: missing.csv: No such file or directory\n"
    )


@pytest.mark.parametrize("method", ["grouped", "hybrid", "general"])
def test_a_state_goes_on_as_if_never_left(run: Run, tmp_path: Path, method: str) -> None:
    """In two parts, between released steps, the rows are those of one run; both go into one file."""
    rng = np.random.default_rng(1)
    items = [f"item {k}" for k in rng.integers(0, 50, 90).tolist()]
    signs = rng.choice([-1, 1], 90).tolist()
    lines = [f"{item},{sign}" for item, sign in zip(items, signs, strict=True)]
    twin = saved("distinct", every=3, method=method)
    for part in (lines[:40], lines[40:]):
        text = "\n".join(["tail,sign", *part, ""]).encode()
        done = run("distinct", "-", *COLUMNS, "-q", "--state", "s.json", "--out", "o.csv", stdin=text)
        assert (done.code, done.out) == (0, ""), done.err
        assert "SIMULATION" not in done.out
    assert "continuing after step 40" in done.err
    assert "belongs to a simulation" in done.err
    wanted = ["step,estimate,low,high", *rows_of(twin, items, signs)]
    assert (tmp_path / "o.csv").read_text().splitlines() == wanted


@BOTH
def test_a_state_of_ones_own(run: Run, tmp_path: Path, command: str) -> None:
    """It is begun with the options, secret, and continued without them, or with the same ones."""
    options = ("-n", 50, "-e", "1/3", "--delta", "1e-6", "--every", 5, "--failure", "0.02", "--base", "tree")
    state = ("--state", "kept", "--following")
    first = run(command, "-", *options, *state, stdin=b"a\n" * 7)
    assert (first.code, len(first.out.splitlines())) == (0, 2), first.err
    assert "epsilon = 1/3, delta = 1/1000000" in first.err
    assert "spends another" not in first.err
    assert stat.S_IMODE((tmp_path / "kept").stat().st_mode) == 0o700
    second = run(command, "-", *options, *state, stdin=b"a\n" * 3)
    assert (second.code, len(second.out.splitlines())) == (0, 2), second.err
    other = run(command, "-", "--every", 6, *state, stdin=b"a\n")
    assert (other.code, other.out) == (2, "")
    assert (
        other.err.splitlines()[-1]
        == "trilift: --every differs from that of the saved state kept: leave it out"
    )
    for more in (("--rho", 1), ("-e", 1), ("--delta", "1e-7"), ("--base", "chain"), ("-n", 51)):
        assert run(command, "-", *more, *state, stdin=b"a\n").code == 2


def test_states_of_other_commands(refused: Run, run: Run) -> None:
    """Each command names what the state is of."""
    saved("distinct")
    line = refused("f2", "-", "-q", "--state", "s.json", stdin=b"a\n")
    assert line == "trilift: s.json: is the state of 'DistinctCounter', not of SecondMoment"
    line = refused("count", "-", "-q", "--state", "s.json", stdin=b"1\n")
    assert line == "trilift: s.json keeps a DistinctCounter: continue it with trilift distinct"
    trilift.Counter(1, horizon=9).save("c.json")
    assert "c.json: not the state of a turnstile counter" in refused("distinct", "-", "--state", "c.json")
    Path("d.json").write_text(Path("s.json").read_text()[:-40])
    assert "damaged" in refused("distinct", "-", "--state", "d.json", stdin=b"a\n")


def test_a_value_is_shown_only_once_it_is_saved(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        raise ClosedPipeError

    monkeypatch.setattr(trilift.counting, "write", gone)
    done = run("distinct", "-", "-n", 9, *RHO, "-q", "--state", "kept", stdin=b"a\nb\n")
    assert (done.code, done.out) == (141, "")
    with DurableCounter.open("kept") as counter:
        assert counter.step == 2


@BOTH
def test_check_says_what_to_expect(run: Run, command: str) -> None:
    """Without a horizon, of as many events as there are; nothing is released or saved."""
    text = b"".join(b"%d\n" % k for k in range(40))
    plain = run(command, "-", "--check", stdin=text)
    assert (plain.code, plain.out) == (0, "40 rows, fine\n")
    assert "with --rho or --epsilon" in plain.err
    words = run(command, "-", "--check", *RHO, "--every", 7, stdin=text).out.splitlines()
    assert words[0] == "40 rows, fine"
    assert words[1].startswith("At event 35: ")
    found = run(command, "-", "--check", *RHO, "-n", 1000, "--json", stdin=text).json
    assert found["rows"] == 40
    assert found["expected"]["step"] == 1000
    assert found["expected"]["nothing"]["low"] == 0
    assert found["expected"]["sd"] > 0
    late = run(command, "-", "--check", *RHO, "-n", 39, "--state", "s.json", stdin=text)
    assert (late.code, late.out) == (2, "")
    assert late.err == "trilift: line 40: past the horizon 39\n"
    assert not Path("s.json").exists()


def test_check_with_a_state(run: Run) -> None:
    saved("distinct", horizon=5).update("a", 1)
    CLASSES["distinct"].load("s.json").save("t.json")
    assert run("distinct", "-", "--check", "--state", "s.json", stdin=b"a\n" * 5).out.startswith(
        "5 rows, fine\n"
    )
    assert run("distinct", "-", "--check", "--state", "s.json", stdin=b"a\n" * 6).code == 2
    assert DistinctCounter.load("s.json").step == 0


@BOTH
def test_what_is_said(run: Run, command: str) -> None:
    done = run(command, "-", "-n", 9, "--rho", 11, "--every", 4, stdin=b"a\nb\n")
    assert done.code == 0
    assert done.out == ""
    lines = done.err.splitlines()
    assert lines[0].startswith("Guarantee: all released values together are 11-zCDP")
    assert "Every line inserts: no --sign-column is given." in lines
    assert "trilift: warning: rho is above 10, which protects little" in lines
    assert lines[-2].endswith("counting the same data again spends another 11 of rho")
    assert lines[-1] == "Took 2 events, up to step 2 of 9; released 0: none before step 4."
    pure = run(command, "-", "-n", 9, "-e", 21, stdin=b"a\n")
    assert "(pure)" in pure.err
    assert "epsilon is above 20" in pure.err
    assert pure.err.splitlines()[-1].startswith("Took 1 events, up to step 1 of 9; released 1: the last is ")
    loose = run(command, "-", "-n", 9, "-e", 1, "--delta", "0.1", stdin=b"a\n")
    assert "delta is above 0.001" in loose.err
    assert "spends another 1 of epsilon and 0.1 of delta" in loose.err


def test_strictness_is_nobodys_business(run: Run) -> None:
    """A removal of what is not there is an event as any other: same rows, same words, same code."""
    for signs in ((1, -1, -1), (-1, -1, -1)):
        saved("f2", horizon=3)
        text = "tail,sign\n" + "".join(f"A,{sign}\n" for sign in signs)
        done = run("f2", "-", *COLUMNS, "-q", "--state", "s.json", stdin=text.encode())
        assert (done.code, len(done.out.splitlines())) == (0, 4)


def test_figures_read_back() -> None:
    rng = np.random.default_rng(2)
    values = [0.0, 1.0, 2.0**53, 2.0**60, 1e300, *(rng.random(100) * 1e6).tolist()]
    assert [float(figure(value)) for value in values] == values
