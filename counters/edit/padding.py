"""Streams that end: how long they were is hidden by steps without events after the end.

The end of a stream is itself a fact that an insertion moves: neighbours may differ in length by one. So after
the true end a random number N of BOTs is fed to an edit-private counter without a horizon, and only then is
the end shown.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
from trilift.counters.edit import ending_state as states
from trilift.counters.edit.design import Design
from trilift.counters.edit.inputs import BotRule
from trilift.counters.edit.ledger import EditLedger, LedgerPart
from trilift.counters.edit.mechanism import ECC, SimECC, class_of
from trilift.counters.edit.position import EditPosition
from trilift.counters.edit.shell import EditShell
from trilift.counters.edit.svt import MOST_STEPS
from trilift.counters.edit.words import delta_text
from trilift.counters.position import Position
from trilift.counters.released import as_array
from trilift.counters.statement import number
from trilift.lift.checks import choice, show, written
from trilift.lift.errors import ParameterError, ReplayError, StateError
from trilift.stream.gdp import ln_of
from trilift.stream.keys import DigestBuilder, Secret, derive_key
from trilift.stream.keystream import Keystream
from trilift.stream.laplace import SAMPLER_ID, LaplaceRows

__all__ = ["EndingCounter", "padding_offset"]

Integers = np.ndarray[Any, np.dtype[Any]]

_COUNTERS: dict[str, type[SimECC] | type[ECC]] = {"simecc": SimECC, "ecc": ECC}


def padding_offset(epsilon: Any, *, delta: Any) -> int:
    """Return m = 1 + ceil((2/epsilon) ln(1/delta)), the middle of the number of BOTs.

    Args:
        epsilon: of the whole mechanism, > 0.
        delta: of the whole mechanism, in (0, 1).

    Raises:
        ParameterError: an argument out of range.

    >>> padding_offset(1, delta=1e-5)
    25
    """
    eps, failure = written("epsilon", epsilon, above=0), written("delta", delta, above=0)
    if failure >= 1:
        raise ParameterError(f"delta must be below 1, got {show(delta)}")
    need = -2 / eps * ln_of(failure)[0]
    return 1 - (-need.numerator // need.denominator)


@dataclass(frozen=True)
class _Plan:
    """What is public and fixed: the design of the counter inside, and the whole budget."""

    design: Design
    epsilon: Fraction
    delta: Fraction

    @property
    def horizon(self) -> int | None:
        """There is none."""
        return None

    @property
    def rule(self) -> BotRule:
        """What an input may be."""
        return self.design.rule

    @property
    def offset(self) -> int:
        """The middle of the number of steps after the end."""
        return padding_offset(self.epsilon, delta=self.delta)

    @property
    def ledger(self) -> EditLedger:
        """Where the budget goes: hiding the end, and the parts of the counter.

        The excesses that hiding the end leaves are delta u/(1+u) at most; with x = epsilon/4, that is
        (delta/2)(1 - tanh x), and tanh x >= x/(1+x), so its logarithm is at most ln(delta/2) - x/(1+x).
        """
        x = self.epsilon / 4
        end = LedgerPart(
            "end of the stream",
            self.epsilon / 2,
            ln_of(self.delta / 2)[1] - x / (1 + x),
            f"the number of steps after the end: max(0, {self.offset} + Z), Z of scale 2/epsilon",
        )
        return EditLedger(self.epsilon, self.delta, (end, *self.design.ledger.parts))


@dataclass(frozen=True, repr=False)
class _EndingPosition:
    """Where the counter inside stands, and whether the end was shown. Secret."""

    inner: EditPosition
    finished: bool


class _Inside:
    """In the place of a state file of the counter inside: it takes no steps by itself."""

    def check(self) -> NoReturn:
        raise StateError("this counter is a part of an EndingCounter: use that one")

    def release(self) -> None:
        """There is nothing to release."""


class EndingCounter(EditShell):
    """Shows the running count of a stream that ends, under edit-differential privacy, its length included.

    Neighbours: extended edit. As edit neighbours, but an insertion that no BOT absorbs drops nothing: the
    stream is then one step longer. Streams are fixed in advance. Guarantee: all values shown, and how many
    there are, together are (epsilon, delta)-differentially private. Mechanism: an edit-private counter
    without horizon at (epsilon/2, delta/2), fed with the stream and then with N = max(0, m + Z) BOTs, Z
    discrete Laplace of scale 2/epsilon, m = :func:`padding_offset`.

    Composition. Let x' have n steps and its neighbour x n+1, p_k = Pr[N = k]. Couple N = k for x with k + 1
    for x': both padded streams have the same length and are edit neighbours (the first BOT after x' absorbs
    the shift). For u = e^(-epsilon/2), p_k <= e^(epsilon/2) p_(k+1) for k >= 1, p_(k+1) <= e^(epsilon/2) p_k
    for k >= 0, and the excesses that are left, p_0 on either side, are at most
    Pr[Z <= -m] = u^m/(1+u) <= delta u/(1+u) <= delta/2. So with A_k, A'_k the laws of what is shown and h the
    excess, sum p_k A_k <= sum min(p_k, e^(epsilon/2) p'_(k+1)) (e^(epsilon/2) A'_k + delta/2) + h
    <= e^epsilon sum p'_(k+1) A'_k + delta/2 + delta/2. Neighbours of the same length get the same N. Without
    the offset m there is no privacy: a stream of n+1 steps can never show n. Theorem: new in this form;
    padding is an idea of Andersson, Chaturvedi, Henzinger, Safavi.

    Errors after the true end are errors against the final count. N is a function of the key, so that a stream
    that is continued, or ended again after a crash, ends at the same step.

    Args:
        epsilon: > 0, exact.
        delta: in (0, 1), exact.
        mechanism: "simecc" or "ecc".
        simulation_seed: noise that anybody can reproduce: no privacy.
        state: a new file that always holds the state; continued by ``load(path, persist=True)``.
        options: further arguments of :class:`~trilift.counters.edit.mechanism.SimECC` or ECC: rate, base,
            accounting, high, resolution, clip, display. No horizon.

    Raises:
        ParameterError: an argument that is not acceptable.
        StateError: the state file exists already, or is in use.
        OSError: the state file cannot be written.

    >>> counter = EndingCounter(10, 1e-5, accounting="paper", simulation_seed=1)
    >>> shown = counter.extend([1] * 50)
    >>> rest = counter.finish()
    >>> len(rest) >= 0, counter.finished
    (True, True)
    >>> counter.ledger.spent_epsilon <= 10, counter.ledger.parts[0].name
    (True, 'end of the stream')
    """

    _most = MOST_STEPS
    _now: _EndingPosition

    def __init__(
        self,
        epsilon: Any,
        delta: Any,
        *,
        mechanism: str = "simecc",
        simulation_seed: int | None = None,
        state: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        if "horizon" in options:
            raise ParameterError("a stream that ends takes no horizon")
        eps, failure = written("epsilon", epsilon, above=0), written("delta", delta, above=0)
        padding_offset(eps, delta=failure)  # refuses what is out of range
        kind = _COUNTERS[choice("mechanism", mechanism, _COUNTERS)]
        design = kind(eps / 2, failure / 2, simulation_seed=simulation_seed, **options).design
        self._begin(_Plan(design, eps, failure), simulation_seed, state)

    def _start(self, plan: _Plan, key: bytes, stream_id: bytes, simulated: bool) -> None:
        self._ending, self._offset = plan, plan.offset
        self._key, self._stream_id, self._simulated = key, stream_id, simulated
        kind = class_of(plan.design)
        self._counter: SimECC | ECC = kind.__new__(kind)
        self._counter._start(plan.design, key, stream_id, simulated)
        self._counter._held = _Inside()  # type: ignore[assignment]
        digest = DigestBuilder("trilift/edit/ending/1").add("counter", self._counter._digest)
        self._digest = digest.add("padding", self._padding_digest()).digest()
        self._lock = threading.Lock()
        self._now = _EndingPosition(self._counter._now, finished=False)

    def __repr__(self) -> str:
        return f"EndingCounter(epsilon={self.epsilon}, step={self.step}, finished={self.finished})"

    def _plan(self) -> _Plan:
        return self._ending

    def _places(self) -> int:
        return self.rule.places

    def _log(self) -> Position:
        return self._now.inner.log

    @property
    def finished(self) -> bool:
        """Whether the end has been shown."""
        return self._now.finished

    @property
    def counter(self) -> SimECC | ECC:
        """The edit-private counter at (epsilon/2, delta/2): its design and ledger are public."""
        return self._counter

    def describe(self) -> str:
        """Return in words what the mechanism will do."""
        return (
            self._counter.describe()
            + f"\nGoes on for about {self._offset} steps after the true end of the stream, then ends."
        )

    def privacy_statement(self) -> str:
        """Return what is guaranteed, to whom, and what it rests on, as plain text."""
        return (
            "Neighbours: extended edit: as edit below, and the end of the stream may be one step later.\n"
            "Guarantee: all released values and their number are (epsilon, delta)-differentially private"
            f" with epsilon = {number(self.epsilon)}, delta = {delta_text(self.delta)}: (epsilon/2,"
            " delta/2) for hiding the end, and as much for this counter:\n"
            + self._counter.privacy_statement()
            + f"\nBoth together:\n{self.ledger.as_text()}"
        )

    # -- counting: update and extend as of every edit-private counter ---------------------------

    def finish(self) -> Integers:
        """End the stream: return the values shown after its true end, perhaps none. Their number is released.

        Publish them one a step, as if the stream went on, and only then that it has ended. After a crash they
        are asked for by their steps: ``update(None, step=N)``.

        Raises:
            StateError: the stream has ended already.
            OSError: the state cannot be written; nothing was changed.
        """
        with self._lock:
            return self._finish()

    def _finish(self) -> Integers:
        steps = max(0, self._offset + self._draw())
        self._check_room(steps)
        now, shown = self._now.inner, np.zeros(0, dtype=np.int64)
        if steps:
            now, shown = self._counter._walked(now, np.tile(np.array([[0, 1]]), (steps, 1)))
        self._move(_EndingPosition(now, finished=True))
        return as_array(shown, self._places())

    def _advance(self, inputs: Integers) -> Integers:
        now, shown = self._counter._walked(self._now.inner, inputs)
        self._move(_EndingPosition(now, finished=False))
        return shown

    def _check_room(self, count: int) -> None:
        if self.finished:
            raise StateError("the stream has ended")
        super()._check_room(count)

    def _draw(self) -> int:
        """Return Z, a function of the counter's key."""
        scale = 2 / self.epsilon
        key = derive_key(
            self._counter._key,
            stream_id=self._counter._stream_id,
            purpose="edit/padding",
            digest=self._padding_digest(),
        )
        return LaplaceRows([scale]).sample(Keystream(key), 0, [0]).block(0)[0]

    def _padding_digest(self) -> bytes:
        digest = DigestBuilder("trilift/edit/padding/1").add("sampler", SAMPLER_ID)
        return digest.add("scale", 2 / self.epsilon).digest()

    # -- saving ---------------------------------------------------------------------------------

    def _write(self, path: Path, position: Any) -> None:
        states.write(path, self._snapshot(position))

    def _snapshot(self, now: _EndingPosition) -> states.EndingSnapshot:
        inner = replace(
            self._counter._snapshot(now.inner), kind=type(self).__name__, digest=self._digest.hex()
        )
        return states.EndingSnapshot(inner, self._ending.design, self.epsilon, self.delta, now.finished)

    @classmethod
    def _loaded(cls, path: Path) -> Self:
        saved = states.read(path)
        inner = saved.inner
        counter = cls.__new__(cls)
        plan = _Plan(saved.design, saved.epsilon, saved.delta)
        counter._start(plan, Secret(inner.key), inner.stream_id, inner.simulated)
        if inner.digest != counter._digest.hex():
            raise ReplayError(f"{path}: the state belongs to another mechanism; it is not continued")
        counter._now = _EndingPosition(inner.position, saved.finished)
        return counter
