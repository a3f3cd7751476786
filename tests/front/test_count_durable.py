"""States in folders: a repeated run gives what one run would have given, and nothing is drawn twice."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trilift.counting
from trilift import Counter
from trilift.counters.durable import DurableCounter
from trilift.counters.edit import HorizonGaussian, SimECC
from trilift.counters.turnstile import DistinctCounter

Run = Callable[..., Any]

COLUMNS = ("--column", "x")
CHAIN = ("stage-max-9", "stage-max-9", "direct-max-16")
KINDS: dict[str, tuple[str, Callable[[], Any], tuple[object, ...]]] = {
    "plain": ("count", lambda: Counter(1, horizon=1200, chain=CHAIN, simulation_seed=1), COLUMNS),
    "wide": (
        "count",
        lambda: HorizonGaussian(1, 1e-5, horizon=1200, high=2**70, resolution=0.5, simulation_seed=1),
        COLUMNS,
    ),
    "edit": ("count", lambda: SimECC(9, 1e-3, horizon=1200, base="toeplitz", simulation_seed=1), COLUMNS),
    "distinct": (
        "distinct",
        lambda: DistinctCounter(rho=100, horizon=1200, every=7, base="tree", simulation_seed=1),
        ("--item-column", "x"),
    ),
}


def written(steps: int, *, seed: int = 3) -> bytes:
    numbers = np.random.default_rng(seed).integers(0, 2, steps).tolist()
    return "\n".join(["x", *map(str, numbers), ""]).encode()


def begun(kind: str, path: str = "kept") -> tuple[object, ...]:
    """Begin a folder whose noise anybody can make, and return the options that continue it."""
    command, make, columns = KINDS[kind]
    DurableCounter(path, make(), journal_bytes=400).close()
    return command, "in.csv", *columns, "-q", "--state", path, "--out", "o.csv"


@pytest.mark.parametrize("kind", KINDS)
def test_a_repeated_run_gives_the_same_file(run: Run, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is left of the output: all, nothing, a part, half a line, a hole of zero bytes at its end."""
    monkeypatch.setattr(trilift.counting, "_BATCH", 100)
    call = begun(kind)
    Path("in.csv").write_bytes(written(900))
    assert run(*call).code == 0
    whole = Path("o.csv").read_bytes()
    assert len(whole.splitlines()) > 100
    begun(kind, "twin")
    again = (*call[: call.index("kept")], "twin", "--out", "t.csv")
    for steps in (1, 450, 900):
        Path("in.csv").write_bytes(b"".join(written(900).splitlines(keepends=True)[: steps + 1]))
        assert run(*again).code == 0
    assert Path("t.csv").read_bytes() == whole
    half = len(whole) // 2
    every = (b"", whole[:3], whole[:half], whole[:-1], whole, whole[:half] + bytes(50))
    for left in every if kind == "plain" else every[2:3]:
        Path("o.csv").write_bytes(left)
        done = run(*call)
        assert done.code == 0, done.err
        assert Path("o.csv").read_bytes() == whole
    Path("o.csv").unlink()
    done = run(*call)
    assert "nothing follows step 900" in done.err
    assert Path("o.csv").read_bytes() == whole
    shown = run(*call[:-2])  # to standard output, too, a repeated run is the same run
    assert shown.out.encode() == whole


def test_other_inputs_are_refused_before_anything_is_written(run: Run) -> None:
    call = begun("plain")
    text = written(1100)
    Path("in.csv").write_bytes(text)
    assert run(*call).code == 0
    whole = Path("o.csv").read_bytes()
    rows = text.splitlines(keepends=True)
    for row in (1, 700, 1100):
        other = [*rows[:row], b"0\n" if rows[row] == b"1\n" else b"1\n", *rows[row + 1 :], b"1\n"]
        Path("in.csv").write_bytes(b"".join(other))
        Path("o.csv").unlink()
        done = run(*call)
        assert done.code == 2
        assert "is not what was counted" in done.err
        kept = Path("o.csv").read_bytes() if Path("o.csv").exists() else b""
        assert whole.startswith(kept)
        assert kept.count(b"\n") <= row
        Path("o.csv").write_bytes(whole)
    for short in (rows[:1], rows[:900]):
        Path("in.csv").write_bytes(b"".join(short))
        done = run(*call)
        assert done.code == 2
        assert f"ends after step {len(short) - 1}, and 1100 were counted" in done.err
    with DurableCounter.open("kept") as counter:
        assert counter.step == 1100
    assert Path("o.csv").read_bytes() == whole


def test_other_outputs_are_left_alone(run: Run) -> None:
    call = begun("plain")
    Path("in.csv").write_bytes(written(20))
    assert run(*call).code == 0
    whole = Path("o.csv").read_bytes()
    Path("in.csv").write_bytes(written(20) + b"1\n")
    for other in (whole + b"21,4\n", whole.replace(b"\n7,", b"\n8,"), b"a letter\n", whole[:30] + b"\0\0x"):
        Path("o.csv").write_bytes(other)
        done = run(*call)
        assert done.code == 2
        assert "--out o.csv is not what was released, from byte " in done.err
        assert Path("o.csv").read_bytes() == other
    with DurableCounter.open("kept") as counter:
        assert counter.step == 20  # nothing new was taken
    Path("o.csv").unlink()
    Path("o.csv").mkdir()
    assert "not a regular file" in run(*call).err


def test_what_follows_alone(run: Run) -> None:
    call = (*begun("plain")[:-1], "one.csv")
    rows = written(40).splitlines(keepends=True)
    Path("in.csv").write_bytes(b"".join(rows[:11]))
    assert run(*call).code == 0
    Path("in.csv").write_bytes(b"".join([rows[0], *rows[11:]]))
    assert "one.csv exists already" in run(*call, "--following").err
    done = run(*call[:-1], "two.csv", "--following")
    assert done.code == 0
    assert "after step 10: the input must hold what follows" in done.err
    parts = [Path(name).read_text().splitlines() for name in ("one.csv", "two.csv")]
    Path("in.csv").write_bytes(b"".join(rows))
    assert run(*call[:-1], "all.csv").code == 0
    assert [*parts[0], *parts[1][1:]] == Path("all.csv").read_text().splitlines()


def test_checking_again(run: Run) -> None:
    call = begun("plain")
    Path("in.csv").write_bytes(written(20))
    assert run(*call).code == 0
    before = Path("o.csv").read_bytes()
    Path("in.csv").write_bytes(written(20) + b"1\n")
    assert run(*call, "--check").out == "21 rows, fine\n"
    Path("in.csv").write_bytes(written(20, seed=4) + b"1\n")
    assert "is not what was counted" in run(*call, "--check").err
    assert Path("o.csv").read_bytes() == before


def test_one_process_at_a_time(run: Run) -> None:
    call = begun("plain")
    Path("in.csv").write_bytes(written(20))
    with DurableCounter.open("kept"):
        done = run(*call)
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1
    assert "in use by another process" in done.err


def test_keys_apart_and_copies(run: Run, tmp_path: Path) -> None:
    key = bytes(range(32)).hex()
    Path("key").write_text(key)
    Path("in.csv").write_bytes(written(20))
    call = ("count", "in.csv", *COLUMNS, "-q", "--state")
    new = ("-e", 1, "-n", 99, "--key", "file:key")
    assert run(*call, "kept", *new, "--out", "o.csv").code == 0
    assert all(key.encode() not in file.read_bytes() for file in Path("kept").iterdir())
    assert "was kept apart" in run(*call, "kept").err
    assert run(*call, "kept", "--key", "file:key", "--out", "o.csv").code == 0
    shutil.copytree("kept", "copy")
    copied = (*call, "copy", "--key", "file:key")
    assert "is a copy" in run(*copied).err
    assert "the original of" in run(*copied, "--adopt", 20).err
    shutil.rmtree("kept")
    assert "21 steps were released, 20 are there" in run(*copied, "--adopt", 21).err
    assert "--check saves nothing" in run(*copied, "--adopt", 20, "--check").err
    assert run(*copied, "--adopt", 20, "--out", "o.csv").code == 0
    assert run(*copied, "--out", "o.csv").code == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--key", "env:NONE"), "of no use without --state"),
        (("--adopt", 3), "of no use without --state"),
        (("--following",), "of no use without --state"),
        (("--state", "kept", "--adopt", 3), "no counter was begun in kept"),
        (("--state", "kept", "--key", "00" * 32), "--key must be env:NAME or file:PATH"),
        (("--state", "kept", "--key", "env:TRILIFT_NONE"), "no variable TRILIFT_NONE"),
        (("--state", "s.json", "--key", "file:s.json"), "s.json is a file"),
        (("--state", "catalogue/.."), "the folder of a new counter must be empty"),
    ],
)
def test_options_that_fit_nothing(refused: Run, options: tuple[object, ...], said: str) -> None:
    Counter(1, horizon=9).save("s.json")
    assert said in refused("count", "-", "-e", 1, "-n", 9, *options, stdin=b"1\n")
    assert not Path("kept").exists()


def test_states_of_other_commands(refused: Run) -> None:
    begun("distinct")
    begun("plain", "numbers")
    DurableCounter("vectors", Counter(1, horizon=9, dimension=2)).close()
    assert "continue it with trilift distinct" in refused("count", "-", "--state", "kept", stdin=b"1\n")
    assert "continue it with trilift count" in refused("f2", "-", "--state", "numbers", stdin=b"1\n")
    assert "continue it from Python" in refused("count", "-", "--state", "vectors", stdin=b"1\n")


def test_a_first_line_that_is_refused_begins_nothing(run: Run) -> None:
    assert run("count", "-", "-e", 1, "-n", 9, "--state", "kept", stdin=b"x\n").code == 2
    assert not Path("kept").exists()
    assert run("count", "-", "-e", 2, "-n", 8, "--state", "kept", stdin=b"1\n").code == 0
