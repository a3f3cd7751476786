"""The benchmark of extend runs and prints what it says; how fast it is, is not tested."""

import json

import pytest
from trilift.experiments.extend_speed import main

SMALL = ["--horizon", "200", "--peer-draws", "10", "--repeats", "1", "--starts", "1", "--start-horizon", "10"]


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    main([*SMALL, "--json"])
    result = json.loads(capsys.readouterr().out)
    extend, (start,) = result["extend"], result["start"]
    assert extend["horizon"] == 200
    assert extend["steps_per_second"] > 0
    if extend["ratio"] is not None:
        assert extend["ratio"] == pytest.approx(
            extend["steps_per_second"] / extend["opendp_samples_per_second"]
        )
    assert result["edit"]["base"] == "chain"
    assert result["edit"]["steps_per_second"] > 0
    assert start["ratio"] == pytest.approx(start["release_seconds"] / start["numpy_seconds"])


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    main(SMALL)
    shown = capsys.readouterr().out
    assert "extend, n = 200:" in shown
    assert "SimECC over a chain, n = 200:" in shown
    assert "first release, n = 10:" in shown
