"""Environments of peers: whole or not there, and scripts whose answers are checked."""

import sys
from pathlib import Path

import pytest
from trilift.experiments.bench import environments
from trilift.experiments.bench.environments import PeerError, ask, interpreter, prepare, script
from trilift.experiments.bench.pins import PINS


def test_every_pin_is_one_version() -> None:
    for peer, pins in PINS.items():
        assert script(peer).is_file()
        names = [pin.split("==")[0].replace("_", "-").lower() for pin in pins]
        assert len(set(names)) == len(names)
        assert all(pin.count("==") == 1 and not set(pin) & set(" /:@") for pin in pins)


def test_a_failed_installation_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command: list[str], **_: object) -> str:
        if "venv" in command:
            Path(command[-1]).mkdir(parents=True)
            return ""
        raise PeerError("no network")

    monkeypatch.setattr(environments, "_run", fail)
    with pytest.raises(PeerError, match="no network"):
        prepare("dpcrpy", tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert interpreter("dpcrpy", tmp_path) is None


def test_an_environment_is_made_once_and_anew_for_other_pins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []

    def run(command: list[str], **_: object) -> str:
        ran.append(command)
        if "venv" in command:
            (Path(command[-1]) / "bin").mkdir(parents=True)
            (Path(command[-1]) / "bin" / "python").touch()
        return ""

    monkeypatch.setattr(environments, "_run", run)
    first = prepare("dpcrpy", tmp_path)
    assert prepare("dpcrpy", tmp_path) == first == interpreter("dpcrpy", tmp_path)
    assert len(ran) == 2
    assert ran[1][-len(PINS["dpcrpy"]) :] == list(PINS["dpcrpy"])
    monkeypatch.setitem(PINS, "dpcrpy", ("dpcrpy==0.1.1",))
    assert interpreter("dpcrpy", tmp_path) is None
    assert prepare("dpcrpy", tmp_path) != first


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("print('no')", "no JSON answer"),
        ("print('[]')", "no JSON answer"),
        ('print(\'{"version": 1, "answers": []}\')', "0 answers to 1 requests"),
        ("import sys; print('why', file=sys.stderr); sys.exit(3)", "exit code 3: why"),
        ("import time; time.sleep(30)", "more than 1 s"),
    ],
)
def test_what_a_script_says_is_checked(tmp_path: Path, code: str, says: str) -> None:
    path = tmp_path / "peer.py"
    path.write_text(code, encoding="utf-8")
    with pytest.raises(PeerError, match=says):
        ask([sys.executable, str(path)], [{}], timeout=1 if "sleep" in code else 60)
    with pytest.raises(PeerError):
        ask([str(tmp_path / "nothing")], [{}], timeout=60)


def test_scripts_run_on_one_core(tmp_path: Path) -> None:
    path = tmp_path / "peer.py"
    path.write_text(
        "import json, os, sys\n"
        "asked = json.load(sys.stdin)\n"
        "print('noise on the way')\n"
        "print(json.dumps({'version': '1', 'answers': [os.environ[one['name']] for one in asked]}))\n",
        encoding="utf-8",
    )
    names = ["OMP_NUM_THREADS", "RAYON_NUM_THREADS", "TRILIFT_THREADS"]
    reply = ask([sys.executable, str(path)], [{"name": name} for name in names], timeout=60)
    assert reply == {"version": "1", "answers": ["1", "1", "1"]}
