"""``--live``: what is drawn is what has been released, and without a terminal nothing changes."""

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trilift import Counter, SimECC
from trilift.braille import Canvas
from trilift.counters.turnstile import Reading
from trilift.live import LiveView, band_of, can_draw

Run = Callable[..., Any]

INPUTS = "".join(f"{k % 2}\n" for k in range(40)).encode()
COUNT = ("count", "-", "-e", 1, "-n", 100, "--quiet")


def drawn(view: LiveView, *, width: int = 60, encoding: str = "utf-8") -> str:
    from rich.console import Console

    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    Console(file=file, width=width, height=20, legacy_windows=False).print(view)
    file.flush()
    return raw.getvalue().decode(encoding)


def test_the_view_holds_what_was_released_and_its_band() -> None:
    view = LiveView("title", horizon=1000, band=float)
    assert "nothing released yet" in drawn(view)
    view.released(1, [5, -3])
    view.released(3, [7])
    assert [(p.step, p.value, p.low, p.high) for p in view.points] == [
        (1, 5.0, 4.0, 6.0),
        (2, -3.0, -5.0, -1.0),
        (3, 7.0, 4.0, 10.0),
    ]
    text = drawn(view)
    assert "step 3 of 1,000: released 7 ± 3 (95 %)" in text
    assert re.search(r"^ +10 ", text, re.M)  # the scale is that of the band
    assert re.search(r"^ +-5 ", text, re.M)
    assert max(map(len, text.splitlines())) <= 60


@pytest.mark.parametrize("batch", [1, 7, 5000])
def test_points_are_thinned_and_the_last_one_stays(batch: int) -> None:
    view = LiveView("", horizon=None)
    for start in range(1, 20_000, batch):
        view.released(start, list(range(start, start + batch)))
        last = start + batch - 1
        assert view.points[-1].step == last == view.points[-1].value
        assert len(view.points) <= 257
    steps = np.array([point.step for point in view.points])
    assert steps[0] == 1
    assert len(steps) > 128
    gaps = np.diff(steps)
    assert (gaps[:-1] == gaps[0]).all()
    assert 0 < gaps[-1] <= gaps[0]


def test_readings_bring_their_own_band() -> None:
    view = LiveView("", horizon=10, readings=True)
    view.released(1, [Reading(step=5, estimate=3.0, low=1.0, high=8.5)])
    assert [(p.step, p.value, p.low, p.high) for p in view.points] == [(5, 3.0, 1.0, 8.5)]
    assert "step 5 of 10: 3, in [1, 8.5]" in drawn(view)


def test_which_counters_have_a_band() -> None:
    counter = Counter(1, horizon=50)
    band = band_of(counter)
    assert band is not None
    assert band(17) == counter.interval(17)
    assert band_of(Counter(1, horizon=50, postprocess="monotone")) is None
    assert band_of(SimECC(1, 1e-6, horizon=1000, rate=0.5)) is None


def test_terminals_without_utf8() -> None:
    view = LiveView("", horizon=None, band=lambda step: 2.0)
    view.released(1, [1, 4, 9])
    text = drawn(view, encoding="ascii")
    assert "released 9 +- 2" in text
    assert "*" in text
    assert "." in text


def test_dots() -> None:
    canvas = Canvas(1, 1)
    canvas.line(0, 0, 0)
    canvas.line(1, 3, 3)
    assert list(canvas.lines()) == [[(chr(0x2800 + 0x01 + 0x80), True)]]
    canvas = Canvas(2, 2, braille=False)
    canvas.line(0, 0, 1)
    canvas.shade(1, 0, 1)
    assert list(canvas.lines()) == [[("*", True), (".", False)]] * 2


def test_without_a_terminal_nothing_changes(run: Run) -> None:
    assert not can_draw()
    done = run(*COUNT, "--live", stdin=INPUTS)
    assert done.code == 0
    assert len(done.values) == 40
    assert done.err == run(*COUNT, stdin=INPUTS).err
    assert "\x1b" not in done.out + done.err


def test_states_and_files_are_those_without_it(run: Run) -> None:
    Path("x.csv").write_bytes(b"n\n" + INPUTS)
    arguments = (
        "count",
        "x.csv",
        "--column",
        "n",
        "-e",
        1,
        "-n",
        100,
        "--quiet",
        "--state",
        "s",
        "--out",
        "o.csv",
    )
    assert run(*arguments, "--live").code == 0
    first = Path("o.csv").read_bytes()
    assert run(*arguments, "--live").code == 0
    assert Path("o.csv").read_bytes() == first


@pytest.mark.parametrize("command", ["distinct", "f2"])
def test_turnstile(run: Run, command: str) -> None:
    done = run(command, "-", "--rho", 1, "-n", 100, "--every", 10, "--live", "--quiet", stdin=INPUTS)
    assert done.code == 0
    assert [line.split(",")[0] for line in done.out.splitlines()] == ["step", "10", "20", "30", "40"]


@pytest.mark.parametrize("command", [("count", "-"), ("distinct", "-"), ("f2", "-")])
def test_not_with_check(refused: Callable[..., str], command: tuple[str, ...]) -> None:
    said = refused(*command, "--check", "--live", "-n", 100, stdin=INPUTS)
    assert said == "trilift: --live is of no use with --check, which releases nothing: leave it out"


def in_terminal(arguments: list[str], *, pipe: bool) -> tuple[int, str, str]:
    """Run trilift with a terminal for standard error; return code, what the terminal got, standard output."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "trilift", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE if pipe else theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"},
    )
    os.close(theirs)
    assert process.stdin is not None
    process.stdin.write(INPUTS)
    process.stdin.close()
    seen = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        seen += piece
    out = b"" if process.stdout is None else process.stdout.read()
    os.close(ours)
    return process.wait(timeout=60), seen.decode(), out.decode()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are those of Unix")
@pytest.mark.parametrize("pipe", [False, True])
def test_in_a_terminal(pipe: bool) -> None:
    """Values go into the pipe as ever; where there is none, the view stands for them."""
    code, seen, out = in_terminal([*map(str, COUNT), "--live"], pipe=pipe)
    assert code == 0
    released = re.findall(r"step 40 of 100: released (-?\d+) ± [\d.]+ \(95 %\)", seen)
    assert released
    assert seen.endswith("\x1b[?25h")  # the cursor is shown again
    assert re.search("[\u2801-\u28ff]", seen)
    lines = out.splitlines()
    assert len(lines) == (40 if pipe else 0)
    if pipe:
        assert lines[-1] == released[-1]
    else:
        assert not re.search(r"^-?\d+\r?$", seen, re.M)
