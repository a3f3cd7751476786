"""Searches in processes of their own: killed and resumed, in a pipe, on a bare image."""

import io
import signal
import subprocess
import sys
import textwrap

import numpy as np
from trilift.factorize import search_stage

SEARCH = {"objective": "mean", "seed": 3, "steps": 4000, "starts": 2}
KILLED = """
import sys
from trilift.factorize import search_stage

def report(step, steps, kappa):
    print(step, flush=True)
    if step >= 400:
        sys.stdin.read(1)  # wait until the signal has been sent

search = {"objective": "mean", "seed": 3, "steps": 4000, "starts": 2}
result = search_stage(5, **search, checkpoint=sys.argv[1], progress=report)
print(result.status.value, result.steps)
"""


def run(code, *arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def test_a_search_killed_by_sigterm_goes_on_where_it_was(tmp_path):
    path = tmp_path / "search.npz"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stdout:
        if int(line) >= 400:
            break
    process.send_signal(signal.SIGTERM)
    rest, errors = process.communicate("x" * 100, timeout=120)
    assert process.returncode == 0
    status, steps = rest.splitlines()[-1].split()
    assert status == "interrupted"
    assert 400 <= int(steps) < 4000
    assert errors == ""
    resumed = search_stage(5, **SEARCH, checkpoint=path, resume=True, progress=False)
    whole = search_stage(5, **SEARCH, progress=False)
    assert resumed.status.value == "finished"
    assert resumed.history == whole.history
    np.testing.assert_array_equal(resumed.stage.B, whole.stage.B)


def test_nothing_is_printed_in_a_pipe(capfd):
    search_stage(4, objective="max", steps=10, starts=2, progress=True)
    assert capfd.readouterr() == ("", "")


BARE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"rich", "typer", "cryptography", "platformdirs", "matplotlib"}:
            raise ModuleNotFoundError(name)
        return None

sys.meta_path.insert(0, Missing())
import trilift.factorize as factorize
from trilift.factorize import progress
sys.stderr.isatty = lambda: True
assert progress._bar() is None
result = factorize.search_direct(4, objective="mean", steps=10, starts=2)
print(result.status.value, "rich" in sys.modules)
"""


def test_a_bare_image_can_search():
    done = run(BARE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "finished False\n", "")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_a_bar_on_standard_error_only(capfd, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    search_stage(4, objective="mean", steps=10, starts=2)
    assert "two-sided mean 4" in terminal.getvalue()
    assert "10/10" in terminal.getvalue()
    assert capfd.readouterr() == ("", "")
    quiet = Terminal()
    monkeypatch.setattr(sys, "stderr", quiet)
    search_stage(4, objective="mean", steps=10, starts=2, progress=False)
    assert quiet.getvalue() == ""
