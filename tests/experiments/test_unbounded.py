"""The comparison of unbounded counters with bounded ones."""

import json

import pytest
from trilift.experiments.unbounded import bounded_variance, compare, main
from trilift.stream.epoch_layout import GROWTHS


def test_ratios_at_small_steps() -> None:
    for law, hybrid in (("laplace", 3.5), ("gaussian", 3.3)):
        rows = compare(law=law, logs=[6, 9, 12], points=9)
        assert [row.log2_t for row in rows] == [6, 9, 12]
        for row in rows:
            assert row.bounded == bounded_variance(1 << row.log2_t, law=law)
            assert set(row.worst) == set(GROWTHS)
            assert all(0.5 < row.mean[growth] <= row.worst[growth] for growth in GROWTHS)
            assert row.worst["tapered"] < hybrid < row.worst["doubling"] + 0.1


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--step", "40", "--json"])
    (row,) = json.loads(capsys.readouterr().out)
    assert row["log2_t"] == 5
    main(["--step", "40"])
    assert "doubling" in capsys.readouterr().out
