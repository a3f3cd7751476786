"""The comparison of unbounded counters with bounded ones."""

import json
from pathlib import Path

import pytest
from trilift.experiments.unbounded import bounded_variance, compare, main
from trilift.stream.epoch_layout import GROWTHS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "noise.md"


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


@pytest.mark.slow
def test_the_page_shows_the_table() -> None:
    """Two of its rows; the others are made by the same command."""
    shown = PAGE.read_text(encoding="utf-8").split("<!-- table: unbounded -->")[1].split("<!-- end -->")[0]
    rows = {line.split("|")[1].strip(): line for line in shown.splitlines() if line.startswith("| 2^")}
    assert set(rows) == {f"2^{log}" for log in range(5, 41, 5)}
    both = zip(compare(law="laplace", logs=[5, 15]), compare(law="gaussian", logs=[5, 15]), strict=True)
    for laplace, gaussian in both:
        cells = [
            f"{row.worst[growth]:.2f} ({row.mean[growth]:.2f})"
            for row in (laplace, gaussian)
            for growth in GROWTHS
        ]
        assert rows[f"2^{laplace.log2_t}"] == f"| 2^{laplace.log2_t} | " + " | ".join(cells) + " |"
