"""The command line as a process of its own: what it loads, and pipes."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer

import pytest
from trilift.counters.durable import DurableCounter

HEAVY = ["jax", "jaxlib", "optax", "sympy", "flint", "scipy", "matplotlib", "pandas", "opendp", "polars"]
MODULE = [sys.executable, "-m", "trilift"]


def loaded(arguments: list[str], stdin: str = "") -> list[str]:
    """Return which heavy packages a command has loaded when it is done."""
    program = (
        "import sys\n"
        "from trilift.cli import main\n"
        f"code = main({arguments})\n"
        f"print(code, [name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=stdin, capture_output=True, text=True, check=True
    )
    code, names = done.stderr.splitlines()[-1].split(" ", 1)
    assert code == "0", done.stderr
    return list(json.loads(names.replace("'", '"')))


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (["count", "-", "-n", "4", "-e", "1"], "1\n1\n"),
        (["plan", "-n", "100", "-e", "1", "--json"], ""),
        (["artifacts"], ""),
    ],
)
def test_light_commands_load_nothing_heavy(arguments: list[str], stdin: str) -> None:
    assert loaded(arguments, stdin) == []


def test_certify_needs_no_jax() -> None:
    assert not {"jax", "scipy", "matplotlib"} & set(loaded(["certify", "direct-max-4"]))


def test_the_module_and_its_exit_codes() -> None:
    done = subprocess.run(
        [*MODULE, "plan", "-n", "0", "-e", "1"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "trilift: horizon must be an integer >= 1 and <= 1000000000000000, got 0\n"


def test_a_pipe_gets_each_value_at_once(tmp_path: Path) -> None:
    """The released value of a line is there before the next line is written."""
    command = [*MODULE, "count", "-", "-n", "9", "-e", "1e6", "-q", "--state", str(tmp_path / "kept")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        watchdog = Timer(60, process.kill)  # else a command that waits for more would wait for ever
        watchdog.start()
        for total in (1, 2, 3):
            process.stdin.write("1\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{total}\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        watchdog.cancel()
    assert process.returncode == 130
    assert "Traceback" not in errors
    with DurableCounter.open(tmp_path / "kept") as counter:
        assert counter.step == 3


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    (tmp_path / "ones.txt").write_text("1\n" * 200_000)
    command = [*MODULE, "count", str(tmp_path / "ones.txt"), "-n", "200000", "-e", "1", "-q"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
    assert process.returncode == 141
    assert [line for line in errors.splitlines() if not line.startswith("trilift: warning")] == []
