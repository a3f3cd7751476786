"""Budgets add up exactly, refuse what is too much and keep a record that several processes share."""

import json
import os
import stat
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from trilift import (
    BiasedCounter,
    Counter,
    DistinctCounter,
    GaussianCC,
    GaussianCounter,
    ParameterError,
    SecondMoment,
    SimECC,
    StateError,
)
from trilift.counters.accounting import Budget, guarantee_of
from trilift.counters.durable import DurableCounter
from trilift.lift.errors import ArtifactFormatError
from trilift.stream.gdp import epsilon_of_rho, ln_delta_bounds, ln_of, mu_for

DELTA = Fraction(1, 10**6)


def late(epsilon: Any = Fraction(1, 3), **options: Any) -> Counter:
    return Counter(epsilon, **{"horizon": 20} | options)


def test_it_can_be_spent_to_the_last_fraction_and_no_further() -> None:
    budget = Budget(1)
    for _ in range(3):
        budget.charge(late(), by="thirds")
    assert budget.left == {"epsilon": 0}
    with pytest.raises(ParameterError, match="epsilon 0 left"):
        budget.charge(late(Fraction(1, 10**12)), by="one more")
    assert len(budget.entries) == 3


def test_floats_are_the_rationals_that_they_are() -> None:
    budget = Budget(Fraction(3, 10))
    budget.charge(late(0.1), by="a")
    budget.charge(late(0.1), by="b")
    with pytest.raises(ParameterError, match="less than"):  # 0.1 is a little more than 1/10
        budget.charge(late(0.1), by="c")


def test_approximate_budgets_add_both() -> None:
    budget = Budget(1, delta=DELTA)
    budget.charge(late(Fraction(1, 4)), by="pure")
    budget.charge(GaussianCounter(Fraction(1, 4), DELTA / 2, horizon=20), by="gaussian")
    budget.charge(BiasedCounter(Fraction(1, 4), DELTA / 2, horizon=20), by="biased")
    assert budget.left == {"epsilon": Fraction(1, 4), "delta": 0}
    assert not budget.fits(GaussianCounter(Fraction(1, 4), DELTA / 10**6, horizon=20))
    assert budget.fits(late(Fraction(1, 4)))
    assert budget.epsilon_at(DELTA) == Fraction(3, 4)
    with pytest.raises(ParameterError, match="delta must be at least"):
        budget.epsilon_at(DELTA / 2)


def test_zcdp_budgets_add_rho() -> None:
    budget = Budget(rho=Fraction(3, 2))
    budget.charge(late(1), by="pure")
    budget.charge(DistinctCounter(rho=Fraction(1, 2), horizon=100, every=10), by="aircraft")
    gaussian = GaussianCounter(1, DELTA, horizon=20)
    budget.charge(gaussian, by="gaussian")
    assert budget.spent == {"rho": 1 + gaussian.mu**2 / 2}
    assert budget.epsilon_at(DELTA) == epsilon_of_rho(budget.spent["rho"], ln_delta=ln_of(DELTA)[0])
    with pytest.raises(ParameterError, match="implies no zCDP"):
        budget.charge(BiasedCounter(Fraction(1, 100), DELTA, horizon=20), by="biased")


def test_gdp_budgets_add_squares_of_mu() -> None:
    budget = Budget(mu=Fraction(5))
    budget.charge(SecondMoment(rho=8, horizon=100, every=10), by="mu 4")
    assert budget.left == {"mu_sq": 9}
    budget.charge(SecondMoment(rho=Fraction(9, 2), horizon=100, every=10), by="mu 3")
    assert budget.left == {"mu_sq": 0}
    epsilon = budget.epsilon_at(DELTA)
    assert ln_delta_bounds(epsilon, mu=5)[1] <= ln_of(DELTA)[0]
    assert ln_delta_bounds(epsilon - Fraction(1, 1 << 19), mu=5)[0] > ln_of(DELTA)[0]
    with pytest.raises(ParameterError, match="only counters with Gaussian noise"):
        budget.charge(late(), by="pure")


def test_a_gaussian_budget_holds_more_than_an_approximate_one() -> None:
    budget = Budget.gaussian(1, DELTA)
    mu = mu_for(1, ln_delta=ln_of(DELTA)[0])
    assert budget.limits == {"mu_sq": mu**2}
    thirds = [GaussianCounter(Fraction(1, 2), DELTA, horizon=20) for _ in range(5)]
    granted = [budget.fits(one) and budget.charge(one, by="half") is one for one in thirds]
    assert granted == [True] * 3 + [False] * 2  # mu(1/2) is a little above a half of mu(1)
    assert budget.epsilon_at(DELTA) <= 1


def test_rows_of_one_person() -> None:
    budget = Budget(6, max_contributions=3)
    budget.charge(late(1), by="made for one row")
    assert budget.spent == {"epsilon": 3}
    budget.charge(late(1, max_contributions=2), by="made for two")
    assert budget.left == {"epsilon": Fraction(3, 2)}
    budget.charge(late(1, max_contributions=5), by="made for five: in full")
    assert budget.left == {"epsilon": Fraction(1, 2)}


def test_other_neighbours_are_refused() -> None:
    budget = Budget(3, delta=DELTA)
    budget.charge(SimECC(1, DELTA / 2, horizon=1000, rate=0.5), by="edit")
    assert budget.neighbours == "edit"
    with pytest.raises(ParameterError, match="about neighbours of kind 'edit', the counter about 'rows'"):
        budget.charge(late(), by="rows")
    assert not budget.fits(late())
    with pytest.raises(ParameterError, match="about neighbours of kind 'rows'"):
        Budget(3, delta=DELTA, neighbours="rows").charge(GaussianCC(1, DELTA), by="edit")


def test_disjoint_parts_cost_what_the_dearest_costs() -> None:
    budget = Budget(1)
    parts = {"AA": late(Fraction(1, 2)), "UA": late(Fraction(1, 4)), None: late(Fraction(1, 3))}
    assert budget.charge_parallel(parts, by="carriers") is parts
    assert budget.spent == {"epsilon": Fraction(1, 2)}
    assert len(budget.entries) == 1
    assert len(budget.entries[0].counters) == 3
    with pytest.raises(StateError, match="already charged"):
        budget.charge(parts["UA"], by="again")


def test_pairs_have_no_proportion_so_parts_of_one_person_add_up() -> None:
    def three() -> dict[str, Any]:
        sizes = {"a": 3, "b": 2, "c": 1}
        return {
            n: GaussianCounter(Fraction(k, 8), DELTA, horizon=20, max_contributions=2)
            for n, k in sizes.items()
        }

    budget = Budget(3, delta=DELTA * 100, max_contributions=2)
    budget.charge_parallel(three(), by="one part", groups_per_person=1)
    assert budget.spent == {"epsilon": Fraction(3, 8), "delta": DELTA}
    budget.charge_parallel(three(), by="two parts")
    assert budget.spent == {"epsilon": Fraction(8, 8), "delta": 3 * DELTA}
    gdp = Budget(mu=1, max_contributions=2)  # squares are in proportion, and more
    counters = three()
    gdp.charge_parallel(counters, by="any parts")
    assert gdp.spent == {"mu_sq": guarantee_of(counters["a"]).mu_sq}


def test_rows_that_move_between_parts() -> None:
    budget = Budget(3, delta=1e-5)
    with pytest.raises(ParameterError, match="use counters of edit neighbours"):
        budget.charge_parallel({"a": late(), "b": late()}, by="moves", moves=True)
    edits = {
        name: SimECC(Fraction(k, 2), DELTA, horizon=1000, rate=0.5)
        for name, k in zip("abc", (1, 2, 1), strict=True)
    }
    budget.charge_parallel(edits, by="moves", moves=True)
    assert budget.spent == {"epsilon": Fraction(3, 2), "delta": 2 * DELTA}


def test_counters_are_charged_before_their_first_step_and_once() -> None:
    budget = Budget(1)
    counter = late()
    counter.update(1)
    with pytest.raises(StateError, match="has taken 1 steps: charge it before its first"):
        budget.charge(counter, by="late")
    fresh = budget.charge(late(), by="early")
    with pytest.raises(StateError, match="already charged"):
        budget.charge(fresh, by="again")
    with pytest.raises(StateError, match="given twice"):
        budget.charge_parallel({"a": (twin := late()), "b": twin}, by="twice")
    with pytest.raises(ParameterError, match="simulated"):
        budget.charge(late(simulation_seed=3), by="simulated")
    assert budget.spent == {"epsilon": Fraction(1, 3)}


def test_other_releases() -> None:
    budget = Budget(1, delta=DELTA)
    budget.charge_amounts({"epsilon": 0.25, "delta": 0}, by="a histogram elsewhere")
    assert budget.left["epsilon"] == Fraction(3, 4)
    for wrong in ({"epsilon": 1}, {"epsilon": -1, "delta": 0}, {"epsilon": 2, "delta": 0}, None, {"rho": 1}):
        with pytest.raises(ParameterError):
            budget.charge_amounts(wrong, by="x")  # type: ignore[arg-type]
    assert len(budget.entries) == 1


BAD: list[dict[str, Any]] = [
    {},
    {"epsilon": 0},
    {"epsilon": float("nan")},
    {"epsilon": "1"},
    {"epsilon": True},
    {"epsilon": 1, "delta": 0},
    {"epsilon": 1, "delta": 1},
    {"epsilon": 1, "rho": 1},
    {"delta": 1e-6},
    {"rho": -1},
    {"mu": float("inf")},
    {"epsilon": 1, "max_contributions": 0},
    {"epsilon": 1, "neighbours": "people"},
]


@pytest.mark.parametrize("arguments", BAD, ids=str)
def test_budgets_that_are_none(arguments: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ParameterError) as raised:
        Budget(**arguments, record=tmp_path / "b.json")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "b.json").exists()


@pytest.mark.parametrize("by", ["", "two\nlines", None, 3])
def test_names_of_spenders(by: Any) -> None:
    budget = Budget(1)
    with pytest.raises(ParameterError, match="by must be a printable text"):
        budget.charge(late(), by=by)
    assert budget.entries == ()


def test_the_record_is_private_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    budget = Budget(1, record=path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    counter = budget.charge(late(), by="late")
    again = Budget.load(path)
    assert (again.spent, again.entries, again.neighbours) == (budget.spent, budget.entries, "rows")
    again.charge(late(), by="another process")
    assert not budget.fits(late(Fraction(1, 2)))  # it looks at the disk
    with pytest.raises(StateError, match="already charged"):
        again.charge(counter, by="late")
    with pytest.raises(StateError, match=r"exists: continue it by Budget\.load"):
        Budget(1, record=path)
    assert "  another process: epsilon 1/3 for Counter" in again.as_text().splitlines()
    assert again.as_text().splitlines()[-1] == "left: epsilon 1/3 (exact)"


def test_processes_share_a_record(tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    Budget(1, record=path)
    program = (
        "import sys, time\nfrom trilift import Counter, StateError\n"
        "from trilift.counters.accounting import Budget\n"
        "budget, granted = Budget.load(sys.argv[1]), 0\n"
        "for _ in range(8):\n"
        "    counter = Counter(0.125, horizon=5)\n"
        "    while True:\n"
        "        try:\n            budget.charge(counter, by='p'); granted += 1\n            break\n"
        "        except StateError:\n            time.sleep(0.001)\n"
        "        except ValueError:\n            break\n"
        "print(granted)\n"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    granted = [int(run.communicate()[0]) for run in runs]
    assert sum(granted) == 8
    assert Budget.load(path).left == {"epsilon": 0}


def test_what_cannot_be_written_is_not_granted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "budget.json"
    budget = Budget(1, record=path)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        budget.charge(late(), by="late")
    assert (budget.spent, path.read_bytes()) == ({"epsilon": 0}, before)


def damaged(record: dict[str, Any], change: str) -> Any:
    entry = record["entries"][0]
    match change:
        case "more than the limit":
            entry["amounts"]["epsilon"] = "2"
        case "negative":
            entry["amounts"]["epsilon"] = "-1"
        case "huge":
            entry["amounts"]["epsilon"] = "1e999999999"
        case "unit":
            entry["amounts"] = {"rho": "1"}
        case "limit":
            record["limits"] = {}
        case "kind":
            record["kind"] = "zcdp"
        case "neighbours":
            record["neighbours"] = "people"
        case "entries":
            record["entries"] = {"a": 1}
        case "rows":
            record["max_contributions"] = True
        case "list":
            return [record]
        case "version":
            record["version"] = 2
    return record


CHANGES = [
    "more than the limit",
    "negative",
    "huge",
    "unit",
    "limit",
    "kind",
    "neighbours",
    "entries",
    "rows",
]


@pytest.mark.parametrize("change", [*CHANGES, "list", "version"])
def test_damaged_records(change: str, tmp_path: Path) -> None:
    from trilift.counters.state_file import checksum

    path = tmp_path / "budget.json"
    Budget(1, record=path).charge(late(), by="late")
    record = damaged(json.loads(path.read_text()), change)
    if isinstance(record, dict):
        record["checksum"] = checksum(record)
    path.write_text(json.dumps(record))
    with pytest.raises(ArtifactFormatError, match=r"budget\.json"):
        Budget.load(path)


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "{}", '{"format": "trilift counter state"}', "\x00"])
def test_files_that_are_no_records(text: str, tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(ArtifactFormatError, match=r"b\.json"):
        Budget.load(tmp_path / "b.json")
    with pytest.raises(ArtifactFormatError, match="cannot be read"):
        Budget.load(tmp_path / "missing.json")


def test_flipped_bytes_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    Budget(1, record=path).charge(late(), by="late")
    data = path.read_bytes()
    for place in range(0, len(data), 7):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(ArtifactFormatError):
            Budget.load(path)


def test_budgets_are_not_copied() -> None:
    import copy

    with pytest.raises(StateError, match="not copied"):
        copy.copy(Budget(1))


def test_durable_counters_and_their_forks_are_paid_for(tmp_path: Path) -> None:
    budget = Budget(1)
    with DurableCounter(tmp_path / "a", budget.charge(late(), by="folder")) as first:
        assert budget.charged(first)
        first.extend([1, 0, 1])
        with pytest.raises(StateError, match="already charged"):
            budget.charge(first, by="again")
    with DurableCounter(tmp_path / "b", budget.charge(late(), by="fork"), fork=tmp_path / "a") as second:
        assert second.step == 3
        assert budget.charged(second)
    with DurableCounter(tmp_path / "c", late(), fork=tmp_path / "a") as third:
        assert not budget.charged(third)
    assert budget.spent == {"epsilon": Fraction(2, 3)}
    assert budget.charge(DurableCounter(tmp_path / "d", late()), by="made before").step == 0
    assert budget.left == {"epsilon": 0}
