"""A budget for one data set: counters are paid for in rationals before they release, and never beyond it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from trilift.counters.accounting.costs import Item, items_of, parallel_cost, sequential_cost
from trilift.counters.accounting.guarantee import NEIGHBOURS, guarantee_of, root_up
from trilift.counters.accounting.record import (
    Entry,
    Limits,
    check_written,
    in_words,
    limits_of,
    read_checked,
    spent_of,
    write_budget,
)
from trilift.counters.lock import exclusive
from trilift.lift.checks import choice, fail, flag, integer, rational, show
from trilift.lift.errors import ParameterError, StateError

__all__ = ["Budget"]


class Budget:
    """What all counters over one data set may spend together, exactly; a counter too many is refused (new).

    A budget is *pure* (epsilon), *approximate* (epsilon and delta), of *zCDP* (rho) or of *GDP* (mu), and
    adds up what counters cost in that unit, as rationals:

    - pure: epsilons add up; counters with (epsilon, 0) only.
    - approximate: epsilons and deltas add up (basic composition, Dwork, McSherry, Nissim, Smith 2006;
      Dwork, Kenthapadi, McSherry, Mironov, Naor 2006); a Gaussian counter costs the pair it was made for.
    - zCDP: rhos add up; a pure counter costs epsilon^2/2, a Gaussian one mu^2/2 (Bun, Steinke 2016).
    - GDP: squares of mu add up; Gaussian counters only (Dong, Roth, Su 2022).

    Which counter comes next may depend on what was released: sums of this kind are privacy filters (Rogers,
    Roth, Ullman, Vadhan 2016 for epsilon and delta; Feldman, Zrnic 2021 for rho; Smith, Thakurta 2022 for
    mu). Counters that run side by side compose likewise (concurrent composition: Vadhan, Wang 2021; Vadhan,
    Zhang 2023).

    All counters must be about the same neighbours: a budget has those of its first counter, or those it was
    made with. Somebody may have ``max_contributions`` rows: a counter made for fewer is charged for as many
    (:meth:`trilift.counters.accounting.Guarantee.scaled`), one made for more is charged in full.

    A budget is an account, no gate: it protects those whose counters are all charged before their first
    step. Amounts and names are public in the sense of docs/privacy.md; the record is written for its owner
    only all the same.

    Args:
        epsilon: of a pure or an approximate budget.
        delta: of an approximate one.
        rho: of a budget of zCDP.
        mu: of a budget of GDP.
        max_contributions: rows (or edits) of one person.
        neighbours: "rows", "edit" or "extended edit"; the first counter decides where it is left out.
        record: a new file that always holds the budget; written before anything is granted, so that several
            processes can share it. Continued by :meth:`load`.

    Raises:
        ParameterError: an argument that is not acceptable.
        StateError: the record exists already, or is in use.
        OSError: the record cannot be written.

    >>> from trilift import Counter
    >>> budget = Budget(1)
    >>> budget.charge(Counter(Fraction(2, 3), horizon=100), by="late flights").epsilon
    Fraction(2, 3)
    >>> budget.left["epsilon"]
    Fraction(1, 3)
    >>> budget.charge(Counter(0.5, horizon=100), by="delays")
    Traceback (most recent call last):
    trilift.lift.errors.ParameterError: the budget has epsilon 1/3 left, less than 1/2 (asked by delays)
    """

    def __init__(
        self,
        epsilon: Any = None,
        *,
        delta: Any = None,
        rho: Any = None,
        mu: Any = None,
        max_contributions: int = 1,
        neighbours: str | None = None,
        record: str | os.PathLike[str] | None = None,
    ) -> None:
        kind, amounts = limits_of(epsilon, delta=delta, rho=rho, mu=mu)
        rows = integer("max_contributions", max_contributions, minimum=1)
        if neighbours is not None:
            choice("neighbours", neighbours, NEIGHBOURS)
        self._lock, self._process = threading.RLock(), os.getpid()
        self._path = None if record is None else Path(os.path.realpath(record))
        self._limits, self._entries = Limits(kind, amounts, rows, neighbours), ()
        if self._path is not None:
            with exclusive(self._path):
                if self._path.exists():
                    raise StateError(f"{record} exists: continue it by Budget.load(path)")
                write_budget(self._path, self._limits, ())

    _limits: Limits
    _entries: tuple[Entry, ...]
    _inside = False  # whether the record is held
    _process: int

    @classmethod
    def gaussian(cls, epsilon: Any, delta: Any, **options: Any) -> Self:
        """Return a budget of GDP that implies (epsilon, delta): the largest mu that does, rounded down.

        It holds more Gaussian counters than an approximate budget of the same numbers: k equal ones may have
        mu / sqrt(k) each, and not (epsilon / k, delta / k).

        Args:
            epsilon: > 0.
            delta: in (0, 1).
            options: further arguments of the class.

        Raises:
            ParameterError: an argument that is not acceptable.
        """
        from trilift.stream.gdp import ln_of, mu_for

        allowed = rational("delta", delta, above=0)
        if allowed >= 1:
            raise fail("delta", "a number between 0 and 1", delta)
        return cls(mu=mu_for(epsilon, ln_delta=ln_of(allowed)[0]), **options)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Continue the budget of a record; it goes on being written there.

        Raises:
            ArtifactFormatError: no budget, or a damaged one.
        """
        budget = cls.__new__(cls)
        budget._lock, budget._process = threading.RLock(), os.getpid()
        budget._path = Path(os.path.realpath(path))
        budget._limits, budget._entries = read_checked(budget._path)
        return budget

    def __repr__(self) -> str:
        amounts = ", ".join(f"{name}={value}" for name, value in self._limits.amounts.items())
        return f"Budget({amounts}, {len(self._entries)} entries)"

    def __reduce__(self) -> Any:
        raise StateError("a budget is not copied or pickled, because both copies could be spent: use record=")

    # -- what there is ----------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """Return "pure", "approximate", "zcdp" or "gdp"."""
        return self._limits.kind

    @property
    def limits(self) -> dict[str, Fraction]:
        """What may be spent: by "epsilon", "delta", "rho" or "mu_sq", the units that add up."""
        return dict(self._limits.amounts)

    @property
    def spent(self) -> dict[str, Fraction]:
        """What was spent, exact, in the same units."""
        return spent_of(self._limits, self._entries)

    @property
    def left(self) -> dict[str, Fraction]:
        """What can still be spent, exact, in the same units."""
        spent = self.spent
        return {name: limit - spent[name] for name, limit in self._limits.amounts.items()}

    @property
    def max_contributions(self) -> int:
        """Rows (or edits) of one person."""
        return self._limits.max_contributions

    @property
    def neighbours(self) -> str | None:
        """The kind of neighbours, None before the first counter decides."""
        return self._limits.neighbours

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What was spent by whom, in order."""
        return self._entries

    def epsilon_at(self, delta: Any) -> Fraction:
        """Return an epsilon such that everything spent so far is (epsilon, delta)-private, rounded up.

        Pure and approximate budgets: the epsilon spent, where delta covers theirs. zCDP: rho + 2 sqrt(rho
        ln(1/delta)) (Bun, Steinke 2016). GDP: from the curve of Balle and Wang, within 2^-20 of the least.

        Raises:
            ParameterError: a delta outside (0, 1), or below what was spent.
        """
        from trilift.counters.accounting.costs import epsilon_of_mu
        from trilift.stream.gdp import epsilon_of_rho, ln_of

        allowed, spent = rational("delta", delta, minimum=0), self.spent
        if allowed >= 1:
            raise fail("delta", "a number between 0 and 1", delta)
        if "epsilon" in spent:
            if allowed < spent.get("delta", 0):
                raise ParameterError(f"delta must be at least the {float(spent['delta']):.6g} that was spent")
            return spent["epsilon"]
        amount = next(iter(spent.values()))
        if amount == 0:
            return Fraction(0)
        if allowed == 0:
            raise fail("delta", "a number between 0 and 1", delta)
        if self.kind == "zcdp":
            return epsilon_of_rho(amount, ln_delta=ln_of(allowed)[0])
        return epsilon_of_mu(root_up(amount), ln_delta=ln_of(allowed)[0])

    def as_text(self) -> str:
        """Return limits, what was spent by whom, and what is left, as text."""
        limits = self._limits
        relation = "not decided yet" if limits.neighbours is None else NEIGHBOURS[limits.neighbours]
        rows = limits.max_contributions
        lines = [
            f"{in_words(limits.amounts)} ({limits.kind}); neighbours: {relation}; at most {rows} of each"
        ]
        lines += [f"  {entry.by}: {in_words(entry.amounts)} for {entry.what}" for entry in self._entries]
        return "\n".join([*lines, f"left: {in_words(self.left)} (exact)"])

    # -- spending ---------------------------------------------------------------------------------

    def fits(self, counter: Any) -> bool:
        """Return whether there is enough left for a counter, and for its neighbours."""
        guarantee = guarantee_of(counter)
        with self._current():
            if self._limits.neighbours not in (None, guarantee.neighbours):
                return False
            try:
                self._check(sequential_cost(self._limits, guarantee), "")
            except ParameterError:
                return False
        return True

    def charged(self, counter: Any) -> bool:
        """Return whether a counter (the same one, also after loading it) was charged."""
        (item,) = items_of({"": counter})
        with self._current():
            return any(item.identity in entry.counters for entry in self._entries)

    def charge(self, counter: Any, *, by: str) -> Any:
        """Pay for a counter before its first step, and return it.

        Args:
            counter: a counter of any kind that has taken no step yet.
            by: who or what spends it, for the record.

        Raises:
            ParameterError: no such counter, other neighbours, or more than is left; nothing is charged.
            StateError: it has taken steps, or was charged already, or the record is in use; or there is none,
                and this process is a fork of the one that has the budget.
            OSError: the record cannot be written; nothing is charged.
        """
        self._pay(items_of({"": counter}), by, lambda limits, items: sequential_cost(limits, items[0].cost))
        return counter

    def charge_parallel(
        self,
        counters: Mapping[Any, Any],
        *,
        by: str,
        groups_per_person: int | None = None,
        moves: bool = False,
    ) -> Mapping[Any, Any]:
        """Pay for counters over disjoint parts of the data, before their first steps, and return them.

        The parts are public and disjoint: a row is in one of them, which one does not depend on anything
        private. Then the dearest part is what all cost together (parallel composition, McSherry 2009): of
        pure and Gaussian counters also where one person has rows in several parts, since the costs are in
        proportion to rows (k_1 + k_2 + ... <= k; squares of mu likewise). Approximate guarantees have no such
        proportion: there the dearest ``groups_per_person`` parts add up.

        With ``moves`` a neighbour may have a row in *another* part: a removal in one and an insertion in the
        other, so the two dearest parts add up. Only counters of edit neighbours protect what then shifts.

        Args:
            counters: counters by the names of their parts; none has taken a step.
            by: who or what spends it.
            groups_per_person: parts in which one person has rows; when left out, ``max_contributions``.
            moves: whether a row may lie in another part.

        Raises:
            ParameterError, StateError, OSError: as :meth:`charge`; nothing is charged.
        """
        most = self._limits.max_contributions
        parts = integer(
            "groups_per_person", most if groups_per_person is None else groups_per_person, minimum=1
        )
        both = flag("moves", moves)
        self._pay(
            items_of(counters),
            by,
            lambda limits, items: parallel_cost(
                limits, [item.cost for item in items], parts=min(parts, most), moves=both
            ),
        )
        return counters

    def charge_amounts(self, amounts: Mapping[str, Any], *, by: str) -> None:
        """Pay for a release that is no counter of trilift, in the units of this budget.

        Args:
            amounts: all of :attr:`limits`' names, each a number >= 0, such as ``{"epsilon": 0.1}``.
            by: who or what spends it.

        Raises:
            ParameterError: other names, no such numbers, or more than is left; nothing is charged.
            StateError, OSError: the record is in use, or cannot be written.
        """
        if not isinstance(amounts, Mapping) or set(amounts) != set(self._limits.amounts):
            raise ParameterError(f"amounts must name {' and '.join(self._limits.amounts)}")
        cost = {name: rational(name, value, minimum=0) for name, value in amounts.items()}
        self._grant(cost, by, "another release", (), self._limits.neighbours)

    def _pay(self, items: Sequence[Item], by: str, price: Any) -> None:
        relations = {item.cost.neighbours for item in items}
        if len(relations) > 1:
            raise ParameterError("the counters are about different neighbours: they have no common budget")
        what = (
            items[0].what if len(items) == 1 else f"{len(items)} counters in parallel, first {items[0].what}"
        )
        names = tuple(item.identity for item in items)
        if len(set(names)) < len(names):
            raise StateError("a counter is given twice")
        with self._current():
            (relation,) = relations
            if self._limits.neighbours not in (None, relation):
                raise ParameterError(
                    f"the budget is about neighbours of kind {self._limits.neighbours!r}, "
                    f"the counter about {relation!r}"
                )
            known = {name for entry in self._entries for name in entry.counters}
            if known & set(names):
                raise StateError("a counter is already charged")
            for item in items:
                item.check_unused()
            self._grant(price(self._limits, items), by, what, names, relation)

    def _grant(
        self, cost: dict[str, Fraction], by: str, what: str, names: tuple[str, ...], relation: str | None
    ) -> None:
        if not isinstance(by, str) or not by or not by.isprintable():
            raise fail("by", "a printable text that is not empty", by)
        with self._current():
            check_written(cost)
            self._check(cost, f" (asked by {by})")
            limits = replace(self._limits, neighbours=self._limits.neighbours or relation)
            entries = (*self._entries, Entry(by, what, cost, names))
            if self._path is not None:
                write_budget(self._path, limits, entries)
            self._limits, self._entries = limits, entries

    def _check(self, cost: dict[str, Fraction], who: str) -> None:
        for name, left in self.left.items():
            if cost[name] > left:
                have, asked = show(left), show(cost[name])
                raise ParameterError(f"the budget has {name} {have} left, less than {asked}{who}")

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Hold the record, as it is on the disk by now; without one, see that this is no fork."""
        if self._path is None and os.getpid() != self._process:
            raise StateError(
                "this budget belongs to the process that this one was forked from, and both could spend it: "
                "use record="
            )
        with self._lock:
            if self._path is None or self._inside:
                yield
                return
            with exclusive(self._path):
                limits, self._entries = read_checked(self._path)
                self._limits = limits
                self._inside = True
                try:
                    yield
                finally:
                    self._inside = False
