"""Records of budgets: whatever is written can be read again, and forks of a process spend nothing twice."""

import os
from fractions import Fraction
from pathlib import Path

import pytest
from trilift import ParameterError, StateError
from trilift.counters.accounting import Budget


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("kept", [False, True])
def test_forks_do_not_spend_a_budget_twice(kept: bool, tmp_path: Path) -> None:
    budget = Budget(1, record=tmp_path / "b.json" if kept else None)
    child = os.fork()
    if child == 0:
        try:
            budget.charge_amounts({"epsilon": 1}, by="child")
        except StateError:
            os._exit(3)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (0 if kept else 3)
    if kept:
        with pytest.raises(ParameterError, match="has epsilon 0 left"):
            budget.charge_amounts({"epsilon": 1}, by="parent")
    else:
        budget.charge_amounts({"epsilon": 1}, by="parent")


def test_amounts_that_no_record_could_give_back(tmp_path: Path) -> None:
    """What is written must be read again, or the whole account would be lost."""
    path = tmp_path / "b.json"
    with pytest.raises(ParameterError, match="at most 6600 bits"):
        Budget(mu=Fraction(1, 10**1500), record=path)
    assert not path.exists()
    longest = Fraction((1 << 6600) - 1, 1 << 6599)
    budget = Budget(longest, record=path)
    with pytest.raises(ParameterError, match="at most 6600 bits"):
        budget.charge_amounts({"epsilon": Fraction(1, 1 << 6600)}, by="x")
    for power in (4100, 4150, 4160):  # together they have more digits than Python writes
        budget.charge_amounts({"epsilon": Fraction(1, 3**power)}, by="x")
    budget.charge_amounts({"epsilon": Fraction(1, 5**2800)}, by="x")
    budget.charge_amounts({"epsilon": Fraction(1, 7**2300)}, by="x")
    assert "left: epsilon" in budget.as_text()
    with pytest.raises(ParameterError, match="left, less than 9"):
        budget.charge_amounts({"epsilon": 9}, by="x")
    assert Budget.load(path).left == budget.left


def test_a_record_does_not_grow_past_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "b.json"
    budget = Budget(1, record=path)
    monkeypatch.setattr("trilift.counters.accounting.record._MAX_BYTES", path.stat().st_size + 100)
    with pytest.raises(StateError, match="could not be read again"):
        budget.charge_amounts({"epsilon": Fraction(1, 2)}, by="x" * 100)
    assert Budget.load(path).entries == budget.entries == ()
