"""SIGINT and SIGTERM at any time: the exit code, and at most one line.

The early ones are sent by the process to itself while a module is being imported, so that nothing depends on
how fast it runs; the later ones come at several delays, to a process that waits for input.
"""

import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Timer

import pytest

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}

# A process that signals itself when it comes to import a module: as __main__ would run it.
PROGRAM = """
import importlib.abc, os, sys

class Trap(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Trap())
sys.argv[1:] = {arguments}
from trilift.cli import main
sys.exit(main())
"""


def ends_quietly(done: "subprocess.CompletedProcess[str]", number: signal.Signals) -> None:
    """At most the line that says so (and the empty one that ends the terminal's ^C)."""
    assert done.returncode == CODES[number], done
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith("trilift: warning")]
    assert lines == [f"trilift: {WORDS[number]}"], done.stderr


@pytest.mark.parametrize("number", list(CODES))
@pytest.mark.parametrize(
    "module",
    ["trilift.application", "typer", "trilift.commands.demo", "trilift.counters", "numpy", "cryptography"],
)
def test_a_signal_during_an_import(module: str, number: signal.Signals, tmp_path: Path) -> None:
    """Before, between and after the commands are loaded."""
    arguments = ["count", "-", "-n", "9", "-e", "1", "-q", "--state", str(tmp_path / "s.json")]
    program = PROGRAM.format(module=module, number=int(number), arguments=arguments)
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, input="1\n", capture_output=True, text=True, check=False, timeout=60)
    ends_quietly(done, number)


@pytest.mark.parametrize("number", list(CODES))
@pytest.mark.parametrize("delay", [0.0, 0.03, 0.1, 0.3])
def test_a_signal_after_a_while(delay: float, number: signal.Signals) -> None:
    """The delay begins with the first module of ours that is loaded after the signals are seen to."""
    command = [sys.executable, "-X", "importtime", "-m", "trilift", "count", "-", "-n", "9", "-e", "1"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        watchdog = Timer(60, process.kill)
        watchdog.start()
        assert process.stderr is not None
        for line in process.stderr:
            if line.split()[-1] == "typer.core":
                break
        time.sleep(delay)
        process.send_signal(number)
        out, errors = process.communicate()
        watchdog.cancel()
    said = [line for line in errors.splitlines() if line and not line.startswith("import time:")]
    assert (process.returncode, out) == (CODES[number], "")
    assert "Traceback" not in errors
    assert said[-1:] == [f"trilift: {WORDS[number]}"]


def test_an_ignored_interrupt_stays_ignored() -> None:
    """As in a background job of a shell without job control."""
    program = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n" + PROGRAM.format(
        module="numpy", number=int(signal.SIGINT), arguments=["count", "-", "-n", "9", "-e", "1", "-q"]
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, input="1\n", capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1


def test_a_second_signal_leaves_at_once() -> None:
    """Also when the first one is being ignored by whatever was running."""
    program = (
        "import os, signal, sys, time\n"
        "from trilift.stopping import as_a_program\n"
        "def run(arguments):\n"
        "    for _ in range(2):\n"
        "        try:\n"
        "            os.kill(os.getpid(), signal.SIGTERM)\n"
        "        except KeyboardInterrupt:\n"
        "            pass\n"
        "    print('still there', flush=True)\n"
        "sys.exit(as_a_program(lambda: run))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "")


def test_an_interrupt_that_a_library_turns_into_something_else() -> None:
    program = (
        "import os, signal, sys\n"
        "from trilift.stopping import as_a_program\n"
        "def run(arguments):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n"
        "        raise ImportError('numpy failed to import') from None\n"
        "sys.exit(as_a_program(lambda: run))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "trilift: interrupted\n")


def test_an_interrupt_in_an_exec() -> None:
    """After which Python would like to end itself by SIGINT, even where the signal was SIGTERM."""
    program = (
        "import sys\n"
        "from trilift.stopping import as_a_program, exit_code\n"
        "def run(arguments):\n"
        "    try:\n"
        "        exec('import os, signal; os.kill(os.getpid(), signal.SIGTERM)')\n"
        "    except KeyboardInterrupt:\n"
        "        print('tidied up')\n"
        "        return exit_code()\n"
        "sys.exit(as_a_program(lambda: run))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (143, "tidied up\n", "")


def test_an_interrupt_in_a_finaliser() -> None:
    program = (
        "import os, signal, sys\n"
        "from trilift.stopping import as_a_program\n"
        "class Noisy:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "def run(arguments):\n"
        "    Noisy()\n"
        "    print('still there', flush=True)\n"
        "sys.exit(as_a_program(lambda: run))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_other_errors_are_not_hidden() -> None:
    program = "from trilift.stopping import as_a_program\nas_a_program(lambda: lambda _: 1 // 0)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
