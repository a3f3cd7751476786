"""ECC and SimECC: running counts of streams in which somebody can join or leave."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Self

from trilift.counters.edit.counter import EditCounter
from trilift.counters.edit.design import Design, make_design
from trilift.counters.edit.statement import described, privacy_statement
from trilift.lift.errors import ParameterError

__all__ = ["ECC", "SimECC", "class_of"]


class _Designed(EditCounter):
    """What SimECC and ECC share: both are made of a :class:`~trilift.counters.edit.design.Design`."""

    _design: Design

    def __init__(
        self,
        epsilon: Any,
        delta: Any,
        *,
        horizon: int | None = None,
        rate: float | None = None,
        base: str = "auto",
        accounting: str = "sharp",
        high: Any = 1,
        resolution: Any = 1,
        clip: bool = False,
        display: str = "latest",
        simulation_seed: int | None = None,
        state: str | os.PathLike[str] | None = None,
    ) -> None:
        design = make_design(
            epsilon,
            delta=delta,
            mechanism=self.mechanism,
            accounting=accounting,
            base=base,
            horizon=horizon,
            rate=rate,
            high=high,
            resolution=resolution,
            clip=clip,
            display=display,
        )
        self._begin(design, simulation_seed, state)

    @classmethod
    def of(
        cls,
        design: Design,
        *,
        simulation_seed: int | None = None,
        state: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Make the counter of a design (:func:`trilift.counters.edit.design.make_design`).

        Args:
            design: everything public about it; for this kind of mechanism.
            simulation_seed: as for the constructor.
            state: as for the constructor.

        Raises:
            ParameterError: a design of another mechanism.
            StateError: the state file exists already, or is in use.
        """
        counter = cls.__new__(cls)
        counter._begin(design, simulation_seed, state)
        return counter

    @classmethod
    def _restored(cls, record: dict[str, Any]) -> Design:
        return Design.from_record(record)

    @property
    def design(self) -> Design:
        """Everything public about the mechanism."""
        return self._design

    def privacy_statement(self) -> str:
        """Return what is guaranteed, to whom, and what it rests on, as plain text."""
        return privacy_statement(self._design, simulated=self._simulated)

    def describe(self) -> str:
        """Return in words what the mechanism will do: when it first shows a value, how late values are."""
        return described(self._design)


class SimECC(_Designed):
    """Shows a running count under edit-differential privacy; buckets of random lengths that read no data.

    Neighbours: edit. One stream comes from the other by inserting one input; everything after it moves one
    step later, up to the first BOT, which disappears, or to the end. Streams are fixed in advance.
    Guarantee: all values shown together are (epsilon, delta)-differentially private, given ideal random bits
    (here from ChaCha20 under a key drawn from the operating system). Mechanism: the stream is cut into
    buckets of secret random lengths; when bucket l ends at t_l, vhat_l = s_(t_l) + N1(l) is put down for the
    step that_l = t_l + max(0, alpha_l + N2(l)), with N1 and N2 the noise of two counters indexed by buckets,
    and shown from then on. Composition: partitions of neighbours are coupled so that bucket sums change in
    four places at most and gaps between checkpoints in two; what the two noises, the lengths and the delays
    spend adds up in ``ledger``, epsilons as rationals, deltas as directed bounds; what is shown is a function
    of the pairs (that_l, vhat_l). Theorem: SimECC of Andersson, Chaturvedi, Henzinger, Safavi,
    "Edit-Neighboring Data Streams and Privacy under Continual Observation" (accounting "paper"); the tighter
    accountings are new, their proofs stand in :mod:`trilift.counters.edit.design` and
    :mod:`trilift.counters.edit.rules`.

    True checkpoints, their number, pending values and the open bucket are never shown, in no error either.

    **One counter serves one version of one stream.** Counting corrected data again costs the budget again and
    needs a new counter. Key and saved states are secrets.

    Args:
        epsilon: > 0, taken as the exact rational that it is.
        delta: in (0, 1), likewise.
        horizon: number of steps, or None for a counter without end.
        rate: events a step that parameters are chosen for; None for a middling one.
        base: noise of counts and times ("auto" for the one of least predicted error).
        accounting: which proof: "sharp" (least noise), "paper", and others between.
        high: largest input, a multiple of the resolution; the smallest is 0.
        resolution: 1 for integer inputs, or 2^-k: inputs are rounded to multiples of it; so is the output.
        clip: move numbers outside [0, high] to the nearest bound instead of refusing them.
        display: "latest", or "extrapolated": the latest value carried on at the mean rate (free).
        simulation_seed: noise that anybody can reproduce, for tests and simulations only: no privacy.
        state: a new file that always holds the state; continued by ``SimECC.load(path, persist=True)``.

    Raises:
        ParameterError: an argument that is not acceptable.
        StateError: the state file exists already, or is in use.
        OSError: the state file cannot be written.

    >>> counter = SimECC(10, 1e-5, horizon=1000, base="toeplitz", simulation_seed=3)
    >>> values = counter.extend([1, None, 0, 1] * 250)
    >>> len(values), counter.step
    (1000, 1000)
    """

    mechanism: ClassVar[str] = "simecc"


class ECC(_Designed):
    """Shows a running count under edit-differential privacy; buckets end by the number of events.

    As :class:`SimECC` in neighbours, guarantee and arguments, but a bucket ends when the noisy sum of its
    inputs passes a noisy threshold: quiet stretches cost no error, and a stream without events shows nothing.
    The price is a first threshold of many events (``describe`` says how many). Mechanism: the sparse vector
    technique, started again for each bucket (:mod:`trilift.counters.edit.svt`, with the shift lemma that the
    accounting rests on). Composition and theorem: as for :class:`SimECC`, with the partition's own cost
    (:class:`trilift.counters.edit.rules.PartRule`); ECC of the same paper.

    Args: as :class:`SimECC`.

    Raises: as :class:`SimECC`.

    >>> counter = ECC(10, 1e-5, horizon=1000, base="toeplitz", simulation_seed=3)
    >>> counter.update(None), counter.update(1)
    (0, 0)
    """

    mechanism: ClassVar[str] = "ecc"


def class_of(design: Design) -> type[SimECC] | type[ECC]:
    """Return the class whose ``of`` makes the counter of a design.

    Raises:
        ParameterError: an unknown mechanism.
    """
    for kind in (SimECC, ECC):
        if kind.mechanism == design.mechanism:
            return kind
    raise ParameterError(f"no counter has the mechanism {design.mechanism!r}")
