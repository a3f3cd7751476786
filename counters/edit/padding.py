"""Streams that end: how long they were is hidden by steps without events after the end.

The end of a stream is itself a fact that an insertion moves: neighbours may differ in length by one. So after
the true end a random number N of BOTs is fed to an edit-private counter without a horizon, and only then is
the end shown.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from trilift.counters.edit.inputs import BOT, BotRule
from trilift.counters.edit.ledger import EditLedger, LedgerPart
from trilift.counters.edit.mechanism import ECC, SimECC
from trilift.counters.edit.words import delta_text
from trilift.counters.statement import number
from trilift.lift.checks import choice, show, written
from trilift.lift.errors import ParameterError, StateError
from trilift.stream.gdp import ln_of
from trilift.stream.keys import DigestBuilder, derive_key
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


class EndingCounter:
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

    Errors after the true end are errors against the final count. The counter is not saved: a stream whose
    process ends is lost with its key.

    Args:
        epsilon: > 0, exact.
        delta: in (0, 1), exact.
        mechanism: "simecc" or "ecc".
        simulation_seed: noise that anybody can reproduce: no privacy.
        options: further arguments of :class:`~trilift.counters.edit.mechanism.SimECC` or ECC: rate, base,
            accounting, high, resolution, clip, display. No horizon, and no state.

    Raises:
        ParameterError: an argument that is not acceptable.

    >>> counter = EndingCounter(10, 1e-5, accounting="paper", simulation_seed=1)
    >>> shown = counter.extend([1] * 50)
    >>> rest = counter.finish()
    >>> len(rest) >= 0, counter.finished
    (True, True)
    >>> counter.ledger.spent_epsilon <= 10, counter.ledger.parts[0].name
    (True, 'end of the stream')
    """

    def __init__(
        self,
        epsilon: Any,
        delta: Any,
        *,
        mechanism: str = "simecc",
        simulation_seed: int | None = None,
        **options: Any,
    ) -> None:
        unknown = sorted(options.keys() & {"horizon", "state"})
        if unknown:
            raise ParameterError(f"a stream that ends takes no {unknown[0]}")
        eps, failure = written("epsilon", epsilon, above=0), written("delta", delta, above=0)
        self._offset = padding_offset(eps, delta=failure)
        self._epsilon, self._delta = eps, failure
        kind = _COUNTERS[choice("mechanism", mechanism, _COUNTERS)]
        self._counter: SimECC | ECC = kind(eps / 2, failure / 2, simulation_seed=simulation_seed, **options)
        self._finished = False

    def __repr__(self) -> str:
        return f"EndingCounter(epsilon={self._epsilon}, step={self.step}, finished={self._finished})"

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that was asked for, exact."""
        return self._epsilon

    @property
    def delta(self) -> Fraction:
        """The delta that was asked for, exact."""
        return self._delta

    @property
    def rule(self) -> BotRule:
        """What an input may be."""
        return self._counter.rule

    @property
    def step(self) -> int:
        """Number of values shown so far: after the end, the padded length."""
        return self._counter.step

    @property
    def finished(self) -> bool:
        """Whether the end has been shown."""
        return self._finished

    @property
    def counter(self) -> SimECC | ECC:
        """The edit-private counter at (epsilon/2, delta/2): its design and ledger are public."""
        return self._counter

    @property
    def ledger(self) -> EditLedger:
        """Where the budget goes: hiding the end, and the parts of the counter.

        The excesses that hiding the end leaves are delta u/(1+u) at most; with x = epsilon/4, that is
        (delta/2)(1 - tanh x), and tanh x >= x/(1+x), so its logarithm is at most ln(delta/2) - x/(1+x).
        """
        x = self._epsilon / 4
        end = LedgerPart(
            "end of the stream",
            self._epsilon / 2,
            ln_of(self._delta / 2)[1] - x / (1 + x),
            f"the number of steps after the end: max(0, {self._offset} + Z), Z of scale 2/epsilon",
        )
        return EditLedger(self._epsilon, self._delta, (end, *self._counter.ledger.parts))

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
            f" with epsilon = {number(self._epsilon)}, delta = {delta_text(self._delta)}: (epsilon/2,"
            " delta/2) for hiding the end, and as much for this counter:\n"
            + self._counter.privacy_statement()
            + f"\nBoth together:\n{self.ledger.as_text()}"
        )

    def update(self, x: Any) -> Any:
        """Take the next input and return the value shown after it.

        Raises:
            StateError: the stream has ended.
            ParameterError: an input that is not acceptable.
        """
        self._check_open()
        return self._counter.update(x)

    def extend(self, values: Any) -> Integers:
        """Take many inputs and return the value shown after each of them.

        Raises:
            StateError: the stream has ended.
            ParameterError: an input that is not acceptable.
        """
        self._check_open()
        return self._counter.extend(values)

    def finish(self) -> Integers:
        """End the stream: return the values shown after its true end, perhaps none. Their number is released.

        Publish them one a step, as if the stream went on, and only then that it has ended.

        Raises:
            StateError: the stream has ended already.
        """
        self._check_open()
        shown = self._counter.extend([BOT] * max(0, self._offset + self._draw()))
        self._finished = True
        return shown

    def _draw(self) -> int:
        """Return Z, a function of the counter's key."""
        scale = 2 / self._epsilon
        digest = DigestBuilder("trilift/edit/padding/1").add("sampler", SAMPLER_ID).add("scale", scale)
        key = derive_key(
            self._counter._key,
            stream_id=self._counter._stream_id,
            purpose="edit/padding",
            digest=digest.digest(),
        )
        return LaplaceRows([scale]).sample(Keystream(key), 0, [0]).block(0)[0]

    def _check_open(self) -> None:
        if self._finished:
            raise StateError("the stream has ended")
