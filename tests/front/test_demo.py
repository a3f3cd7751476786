"""``trilift demo``."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from trilift import Counter
from trilift.commands import demo
from trilift.experiments import flights


@pytest.mark.slow
def test_the_whole_demo(tmp_path: Path) -> None:
    """In a process of its own, with real noise.

    The released counts of 12 months lie within 12 standard deviations (Laplace sums: all of them do with
    probability above 1 - 1e-5).
    """
    pytest.importorskip("matplotlib")
    command = [sys.executable, "-m", "trilift", "demo", "--out", "d", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert (record["flights"], record["late"]) == (336_776, 70_774)
    assert 0.999 < record["spent"] <= record["epsilon"] == 1.0
    *trees, shipped, found = record["mechanisms"]
    assert [found["max_se_ratio"], found["mean_se_ratio"]] == [1.0, 1.0]
    assert found["max_se"] < 700
    assert shipped["max_se"] < found["max_se"] < min(tree["max_se"] for tree in trees)
    assert len(record["steps"]) == 12
    for step in record["steps"]:
        assert abs(step["released"] - step["true"]) < 12 * step["sd"][found["name"]]
    assert any(step["released"] != step["true"] for step in record["steps"])
    assert (tmp_path / "d" / "flights.png").read_bytes().startswith(b"\x89PNG")
    checked = [sys.executable, "-m", "trilift.verify.check_artifact", str(tmp_path / "d" / "demo-stage.npz")]
    assert subprocess.run(checked, capture_output=True, check=False).returncode == 0


def test_the_table_says_what_its_columns_are(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["binary tree", "17-ary tree", "default shipped chain", "stage found just now"]
    errors = {"max_se": 4.0, "mean_se": 1.0, "max_se_ratio": 1.0, "mean_se_ratio": 1.0}
    sds = dict(zip(names, (107.5, 35.5, 23.8, 24.9), strict=True))
    record = {
        "epsilon": 1.0,
        "mechanisms": [{"name": name, **errors} for name in names],
        "steps": [{"step": 10, "date": "01-31", "true": 3, "released": 5, "sd": sds}],
    }
    demo._show(record, Counter(1, horizon=10))
    text = capsys.readouterr().out
    (row,) = [line.split() for line in text.splitlines() if "01-31" in line]
    assert row == ["10", "01-31", "3", "5", "+2", "24.9", "23.8", "35.5", "107.5"]
    said = " ".join(text.split())
    order = ["the stage found just now", "the shipped chain", "17-ary tree", "the binary tree"]
    places = [said.index(name, said.index("sd is the standard deviation")) for name in order]
    assert places == sorted(places)


def test_missing_extras_are_named(refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights, "find_spec", lambda name: None)
    assert "pip install 'trilift[demo]'" in refused("demo")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "pip install 'trilift[plot]'" in refused("demo")
    assert not Path("demo-output").exists()


def test_bad_epsilon(refused: Callable[..., str]) -> None:
    assert "epsilon must be a finite number > 0, got '0'" in refused("demo", "--epsilon", 0)
