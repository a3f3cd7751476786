"""``trilift attack``: rates from files, mechanisms from modules, and what is said of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trilift.experiments.edit.attack import block_rates, run_attack
from trilift.experiments.edit.simulated import SIMULATED, simulated

Run = Callable[..., Any]
Refused = Callable[..., str]

MECHANISMS = """
import dataclasses
import numpy as np
from beside import LIFT


class Exact:
    def release(self, stream, seed):
        return np.cumsum(stream) + LIFT


@dataclasses.dataclass
class Needs:
    scale: float

    def release(self, stream, seed):
        return np.random.default_rng(seed).normal(scale=self.scale, size=len(stream))


class holder:
    noise = Needs(3.0)


def release(stream, seed):
    return list(np.cumsum(stream))


def fails(stream, seed):
    return 1 / 0


short = lambda stream, seed: [0.0]
number = 3
"""


@pytest.fixture
def mine(run: Run, tmp_path: Path) -> Path:
    """Rates in rates.csv, mechanisms in mine.py, in the current folder."""
    (tmp_path / "beside.py").write_text("LIFT = 0.0\n")
    (tmp_path / "mine.py").write_text(MECHANISMS)
    rates = tmp_path / "rates.csv"
    rates.write_text("".join(f"{rate}\n" for rate in block_rates(200)))
    return rates


def test_an_object_of_one_s_own(run: Run, mine: Path) -> None:
    done = run("attack", mine, "--mechanism", "mine.py:Exact", "--runs", 50, "--json")
    assert (done.code, done.err) == (0, "")
    record = done.json
    assert list(record) == [
        *("mechanism", "epsilon", "ln_delta", "predicted_advantage", "T", "runs", "correct", "advantage"),
        *("ci_low", "ci_high", "rmse", "rmse_se", "threshold", "seed", "epsilon_at_least"),
    ]
    assert (record["advantage"], record["ci_high"], record["rmse"], record["T"]) == (1.0, 1.0, 0.0, 200)
    low = record["ci_low"]
    assert record["epsilon_at_least"] == pytest.approx(np.log((1 + low) / (1 - low)))
    text = run("attack", mine, "-m", "mine.py:Exact", "--runs", 50).out
    assert "The released values tell that somebody was inserted." in text
    assert "1.0000 (95 % interval" in text


@pytest.mark.parametrize(
    "name", ["mine.py:Exact", "mine.py:release", "mine:Exact", "mine:release", "./mine.py:Exact"]
)
def test_ways_to_name_it(run: Run, mine: Path, name: str) -> None:
    record = run("attack", mine, "--mechanism", name, "--runs", 9, "--json").json
    assert (record["mechanism"], record["correct"], record["rmse"]) == (name, 9, 0.0)


def test_an_object_inside_another(run: Run, mine: Path) -> None:
    """Noise alone: Binomial(200, 1/2); the interval holds 0 for this seed."""
    text = run("attack", mine, "-m", "mine.py:holder.noise", "--runs", 200, "--seed", 1).out
    assert "This attack finds nothing" in text


@pytest.mark.parametrize("name", SIMULATED)
def test_known_mechanisms(run: Run, mine: Path, name: str) -> None:
    options = ["--epsilon", "1/2", "--delta", "1e-6", "--runs", 30, "--seed", 4]
    record = run("attack", mine, "-m", name, *options, "--json").json
    mechanism = simulated(name, epsilon=0.5, ln_delta=np.log(1e-6), horizon=200)
    wanted = run_attack(block_rates(200), mechanism=mechanism, runs=30, seed=4)
    assert {key: record[key] for key in wanted.to_json()} == pytest.approx(wanted.to_json())
    assert (record["epsilon"], record["ln_delta"]) == (0.5, pytest.approx(np.log(1e-6)))
    looks = name in ("PartitionCC", "SimECC", "ECC")
    assert (record["predicted_advantage"] is None) is looks
    assert ("by the covariance" in run("attack", mine, "-m", name, *options).out) is not looks


def test_a_tiny_delta(run: Run, mine: Path) -> None:
    options = ["-e", 10, "--delta", "1e-400", "--runs", 2, "--json"]
    assert run("attack", mine, "-m", "GaussianCC", *options).json["ln_delta"] == pytest.approx(-921.034)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("0.25\n.5\n1e-1\n", []),
        ("rate\n0.25\n0.5\n0.1\n", []),
        ("any name\n0.25\n0.5\n0.1\n", []),
        ("step,rate\n1,0.25\n2,0.5\n3,0.1\n", []),
        ("t,p\n1,0.25\n2,0.5\n3,0.1\n", []),
        ('"t","rate","p"\n1,0.25,9\n2,0.5,9\n3,0.1,9\n', []),
        ("rate,p\n9,0.25\n9,0.5\n9,0.1\n", ["--column", "p"]),
        ("step;rate\n1;0.25\n2;0.5\n3;0.1\n", ["--delimiter", ";"]),
        ("\ufeffrate\r\n0.25\r\n0.5\r\n0.1", []),
    ],
)
def test_files_of_rates(run: Run, mine: Path, text: str, options: list[str]) -> None:
    """All of these hold the rates 0.25, 0.5 and 0.1: theta = (1/16 + 4/25) / 2."""
    mine.write_text(text)
    arguments = ["-m", "mine:Exact", "--runs", 1, "--json", *options]
    assert run("attack", mine, *arguments).json["threshold"] == pytest.approx((1 / 16 + 0.16) / 2)
    assert run("attack", "-", *arguments, stdin=text.encode()).json["T"] == 3


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("0.1\n0.5x\n", [], "line 2: not a decimal number"),
        ("0.1\n\n0.5\n", [], "line 2: blank"),
        ("0.1\n1.5\n", [], "line 2: a rate must be a number from 0 to 1"),
        ("0.1\n-0.5\n", [], "line 2: a rate must be a number from 0 to 1"),
        ("0.1\nnan\n", [], "line 2: not a decimal number"),
        ("a,b\n1,1\n", [], "line 1: no column is named 'rate'; there are 'a', 'b'"),
        ("rate,b\n1,1\n0.5\n", [], "line 3: 1 field, but the header has 2"),
        ("rate\n1\n2\n", [], "line 3: a rate must be a number from 0 to 1"),
        ("rate\n1\n", ["--column", "p"], "no column is named 'p'"),
        ("rate\n1\n", ["--delimiter", "ab"], "delimiter must be one character"),
        ("", [], "the rates of at least two steps are needed, the file holds 0"),
        ("0.5\n", [], "the rates of at least two steps are needed, the file holds 1"),
        ("0.5\n0.5\n", [], "rates must change somewhere"),
    ],
)
def test_bad_rates(refused: Refused, mine: Path, text: str, options: list[str], message: str) -> None:
    mine.write_text(text)
    assert message in refused("attack", mine, "-m", "mine:Exact", *options)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mine.py:short", "release must return 200 values, a value a step, got 1 values"),
        (
            "mine.py:fails",
            "the mechanism mine.py:fails failed: ZeroDivisionError: division by zero (mine.py, line",
        ),
        ("mine.py:Needs", "mine.py:Needs: Needs() failed: TypeError"),
        ("mine.py:number", "mine.py:number: the object has no method release(stream, seed)"),
        ("mine.py:absent", "mine.py:absent: mine.py has no 'absent'"),
        ("absent.py:x", "--mechanism absent.py:x: there is no file absent.py"),
        ("absent_module:x", "absent_module:x: ModuleNotFoundError: No module named 'absent_module'"),
        ("wrong.py:x", "--mechanism wrong.py:x: SyntaxError"),
        ("raises.py:x", "--mechanism raises.py:x: ValueError: no (raises.py, line 2)"),
        ("mine.py", "--mechanism mine.py: neither module:object nor one of BaseCC"),
        (":x", "--mechanism :x: name it module:object or file.py:object"),
        ("mine.py:", "--mechanism mine.py:: name it module:object or file.py:object"),
        ("SimEcc", "--mechanism SimEcc: neither module:object nor one of BaseCC, PartitionCC"),
    ],
)
def test_bad_mechanisms(refused: Refused, mine: Path, name: str, message: str) -> None:
    (mine.parent / "wrong.py").write_text("def x(:\n")
    (mine.parent / "raises.py").write_text("\nraise ValueError('no')\n")
    assert message in refused("attack", mine, "--mechanism", name, "--runs", 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-m", "mine:Exact", "-e", 1], "--epsilon and --delta are for mechanisms given by their names"),
        (["-m", "BaseCC", "-e", 1], "--delta is needed for BaseCC"),
        (["-m", "BaseCC", "--delta", "1e-5"], "--epsilon is needed for BaseCC"),
        (["-m", "BaseCC", "--delta", 1, "-e", 1], "delta must be a number > 0 and < 1, got '1'"),
        (["-m", "BaseCC", "--delta", 0, "-e", 1], "delta must be a finite number > 0, got '0'"),
        (["-m", "BaseCC", "--delta", 0.1, "-e", "x"], "epsilon must be a finite number > 0, got 'x'"),
        (["-m", "mine:Exact", "--runs", 0], "runs must be an integer >= 1"),
        (["-m", "mine:Exact", "--runs", "1e3"], "runs must be an integer, such as 1000"),
        (["-m", "mine:Exact", "--seed", -1], "seed must be an integer >= 0"),
        ([], "Missing option '--mechanism'"),
    ],
)
def test_bad_options(refused: Refused, mine: Path, options: list[object], message: str) -> None:
    assert message in refused("attack", mine, *options)


def test_no_such_file(refused: Refused, mine: Path) -> None:
    assert "absent.csv: No such file" in refused("attack", "absent.csv", "-m", "mine:Exact")
