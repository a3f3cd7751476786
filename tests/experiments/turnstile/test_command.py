"""trilift reproduce turnstile, from outside."""

import json
from pathlib import Path

import pytest
from trilift.application import run


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["reproduce", "turnstile", "--T", "120", "--rho", "1", "--runs", "1", "--part", "distinct"]
    assert run([*arguments, "--json", "--out", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert result["T"] == 120
    assert result["noise"] == "floating point, simulated"
    assert "not a private" in captured.err or "nothing here is a private release" in captured.err
    assert json.loads((tmp_path / "turnstile-toeplitz-rho-120.json").read_text()) == result
    assert run([*arguments, "--resume", "--out", str(tmp_path)]) == 0
    assert "A2g closer" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rho", "1", "--epsilon", "1"], "not both"),
        (["--epsilon", "1", "--base", "toeplitz"], "Gaussian"),
        (["--T", "ten"], "T"),
        (["--part", "nothing"], "parts"),
        (["--resume"], "--resume needs"),
    ],
)
def test_refusals(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "turnstile", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""
