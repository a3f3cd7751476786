"""Noise without an end, made of bounded processes, one an epoch: the hybrid mechanism, and the relay (new).

An unbounded stream is cut into epochs (:mod:`trilift.stream.epoch_layout`), and every epoch has a bounded
counter of its own, with a key of its own. Its noise at local step m is N_j(m), m = 0 .. n_j - 1. What the
counter of an epoch counts is that epoch's inputs alone; what is released at a step adds to it the totals of
the epochs before. The two growths differ in where those totals come from.

**doubling** (Chan, Shi, Song 2011, hybrid mechanism; in the form of Andersson, Chaturvedi, Henzinger, Safavi:
CC). Every epoch's total is released once more, with noise M_j of its own, and half of the budget pays for it:

    noise(t) = M_0 + .. + M_(j-1) + N_j(m) inside epoch j,   M_0 + .. + M_j at its last step.

**relay** (new). The total of a finished epoch *is* the last value of its own counter: no budget is split off.

    noise(t) = N_0(n_0 - 1) + .. + N_(j-1)(n_(j-1) - 1) + N_j(m).

*Privacy of the relay.* Let counter j be a release of R_j x_j + z_j, x_j the inputs of epoch j, that is
epsilon-private for streams that differ by one input (or mu-GDP), with L_j R_j = T exactly. Everything released
is a function of (R_0 x_0 + z_0, R_1 x_1 + z_1, ...), with z_0, z_1, ... independent: the value at step t is
sum_(i<j) floor(l_i (R_i x_i + z_i) + 1/2) + floor(l (R_j x_j + z_j) + 1/2), l_i the last row of L_i and l row m
of L_j. Neighbours that differ in one input differ in one x_j. So all releases but one have the same law on
both sides, given everything before, and that one costs epsilon (parallel composition); as every part is a
linear query answered by additive noise, inputs may be chosen adaptively. The infinite sequence is covered
because each of its finite prefixes is, with the same epsilon. A person whose inputs change by chi in total,
chi_j of it in epoch j, costs sum_j (chi_j / chi) epsilon = epsilon; under mu-GDP sqrt(sum_j (chi_j / chi)^2) mu
<= mu.

*Error of the relay.* A counter of n steps has variance about c log(n)^3 (Laplace; c log(n)^2 for Gaussian
noise). With n_(j+1) = n_j^a the variances of the finished epochs are a geometric series of ratio a^-3, and the
current epoch's counter, calibrated for up to n_j^a steps, costs at most a^3 times what a counter for exactly t
steps would: a constant factor at every t, for all t, and the true constant is much smaller, since a counter's
early steps have less noise than its last ones. The hybrid pays the split (a factor 4 in variance for Laplace
noise, 2 for Gaussian noise) and log2(t) totals besides. ``python -m trilift.experiments.unbounded`` prints both.

*Why not one smooth infinite chain.* A chain with infinitely many levels needs budgets epsilon_l with a finite
sum, so the level that serves t of size m^k has epsilon_k = o(epsilon / k): its variance exceeds that of the
chain for t by a factor that grows without bound (zeta(1 + d)^2 k^(2 d) with epsilon_l ~ l^-(1+d)). The relay's
factor is bounded.

*Rounding.* Each part is rounded on its own, floor(u + 1/2) of exact u, and parts are added as integers. The
counts are multiples of the lattice h, so floor(u / h + 1/2) of (count + noise) is count / h + floor(noise / h +
1/2): integers go through the floor unchanged, and what is released is the exact sum of the parts' releases.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np
from trilift.lift.checks import numeric_array
from trilift.lift.errors import HorizonError, ParameterError, StateError
from trilift.lift.integers import add, shrink
from trilift.stream.epoch_layout import LAST_STEP, Layout
from trilift.stream.keys import DigestBuilder
from trilift.stream.process import NoiseProcess
from trilift.stream.stepwise import Stepwise

__all__ = ["EpochMechanism", "EpochNoise", "Part", "epoch_purpose"]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
Integers = np.ndarray[Any, np.dtype[Any]]
Part = tuple[str, int, int]
"""(kind, epoch, local step): kind "epoch" for a step of an epoch's counter, "total" for a separate total."""

_KEPT = 4  # epochs whose factors are held at once
_LABEL = "trilift/epochs/1"


class EpochMechanism(Protocol):
    """Makes the bounded processes of epochs: the same ones whenever it is asked for the same epoch.

    Two epochs' processes are made under different purposes, which is what makes their noise independent.
    """

    @property
    def places(self) -> int:
        """Binary places of the output lattice, the same for all processes."""
        ...

    @property
    def identity(self) -> bytes:
        """32 bytes that bind the kind of processes and their budgets."""
        ...

    def counters(self, epoch: int, length: int, purposes: Sequence[str]) -> Sequence[NoiseProcess]:
        """Return independent processes of ``length`` steps, one a purpose: the counter of an epoch.

        Its budget is everything for a relay, and one half's share for "doubling".
        """
        ...

    def totals(self, epoch: int, purposes: Sequence[str]) -> Sequence[NoiseProcess]:
        """Return independent processes of one step, one a purpose: the epoch's total ("doubling" only)."""
        ...


def epoch_purpose(purpose: str, layout: Layout, kind: str, epoch: int) -> str:
    """Return the purpose under which an epoch's process draws: it binds the whole layout.

    >>> epoch_purpose("counter/0", Layout.doubling(), "epoch", 3)
    'counter/0/doubling/epoch/3'
    """
    return f"{purpose}/{layout.text}/{kind}/{epoch}"


class _Store:
    """The processes of the epochs for several purposes: built when needed, a few kept."""

    def __init__(self, layout: Layout, mechanism: EpochMechanism, purposes: Sequence[str]) -> None:
        self.layout, self.mechanism, self.purposes = layout, mechanism, tuple(purposes)
        self.lock = threading.RLock()
        self._kept: OrderedDict[tuple[str, int], Sequence[NoiseProcess]] = OrderedDict()
        self._finished: list[list[int]] = []  # sum of the noises of epochs 0 .. j, one number a purpose
        self._variances: list[float] = []  # the same sum's variance

    def processes(self, kind: str, epoch: int) -> Sequence[NoiseProcess]:
        """Return the processes of an epoch, one a purpose."""
        with self.lock:
            known = self._kept.get((kind, epoch))
            if known is None:
                names = [epoch_purpose(purpose, self.layout, kind, epoch) for purpose in self.purposes]
                if kind == "total":
                    known = self.mechanism.totals(epoch, names)
                else:
                    known = self.mechanism.counters(epoch, self.layout.length(epoch), names)
                if any(process.places != self.mechanism.places for process in known):
                    raise ParameterError("the processes of all epochs must share one output lattice")
                self._kept[kind, epoch] = known
            self._kept.move_to_end((kind, epoch))
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return known

    def closing(self, epoch: int) -> Part:
        """Return the part that stands for a finished epoch."""
        if self.layout.growth == "relay":
            return "epoch", epoch, self.layout.length(epoch) - 1
        return "total", epoch, 0

    def finished(self, epochs: int) -> list[int]:
        """Return the summed noise of the first ``epochs`` epochs, one number a purpose."""
        with self.lock:
            while len(self._finished) < epochs:
                kind, epoch, local = self.closing(len(self._finished))
                last = [int(p.at([local])[0]) for p in self.processes(kind, epoch)]
                before = self._finished[-1] if self._finished else [0] * len(last)
                self._finished.append([a + b for a, b in zip(before, last, strict=True)])
            return self._finished[epochs - 1] if epochs else [0] * len(self.purposes)

    def finished_variance(self, epochs: int) -> float:
        """Return the variance of the summed noise of the first ``epochs`` epochs."""
        with self.lock:
            while len(self._variances) < epochs:
                kind, epoch, local = self.closing(len(self._variances))
                own = float(self.processes(kind, epoch)[0].variance([local])[0])
                self._variances.append(own + (self._variances[-1] if self._variances else 0.0))
            return self._variances[epochs - 1] if epochs else 0.0


class EpochNoise(Stepwise):
    """Noise of an unbounded counter: the sum of the parts of a layout, at any step, range or set of steps.

    Neighbours: two streams, of any length, that differ in one input by at most what the mechanism's budget is
    for. Guarantee: adding ``noise.at(t)`` to every exact prefix sum has the privacy of the mechanism's budget,
    (epsilon, 0) for Laplace and mu-GDP for Gaussian noise, for all steps together and adaptively chosen inputs.
    Composition: parallel over epochs, and for growth "doubling" sequential over an epoch's counter and its total.
    Theorem: "doubling", Chan, Shi, Song 2011; "relay", new (proof in the text of this module).

    Nothing here sees data. Epochs are made when their steps are first met, so the memory is that of a few
    bounded counters, however long the stream is. Key and noise are secrets, as those of every process.

    Args:
        layout: the epochs.
        mechanism: makes the processes of epochs.
        purpose: path that is unique per key, such as "counter/0".

    Raises:
        ParameterError: processes of unequal lattices, or what the mechanism refuses.
    """

    def __init__(self, layout: Layout, mechanism: EpochMechanism, *, purpose: str) -> None:
        self._attach(_Store(layout, mechanism, [purpose]), 0)

    @classmethod
    def family(cls, layout: Layout, mechanism: EpochMechanism, *, purposes: Sequence[str]) -> list[Self]:
        """Return independent noises of one mechanism, one a purpose, which share all factors.

        Raises:
            ParameterError: no purpose, or the same one twice.
        """
        if not purposes or len(set(purposes)) != len(purposes):
            raise ParameterError("purposes must be at least one, all different")
        store = _Store(layout, mechanism, purposes)
        members = []
        for index in range(len(purposes)):
            member = cls.__new__(cls)
            member._attach(store, index)
            members.append(member)
        return members

    def _attach(self, store: _Store, index: int) -> None:
        self._store, self._index = store, index
        self.layout, self.horizon = store.layout, None
        self.places = store.mechanism.places
        digest = DigestBuilder(_LABEL).add("layout", store.layout.text)
        digest.add("ends", store.layout.ends).add("mechanism", store.mechanism.identity)
        self.digest = digest.add("places", self.places).digest()

    def __repr__(self) -> str:
        return f"EpochNoise({self.layout.text}, horizon=None)"

    def __reduce__(self) -> Any:
        raise StateError(
            "noise is not copied or pickled, because it holds its key: make it again from the key"
        )

    # -- noise ----------------------------------------------------------------------------------

    def _rounded(self, steps: IntArray) -> Integers:
        epochs = self.layout.epoch_of(steps)
        pieces = [
            self._piece(int(epoch), steps[epochs == epoch] - self.layout.start(int(epoch)))
            for epoch in np.unique(epochs)
        ]
        if any(piece.dtype == object for piece in pieces):
            pieces = [piece.astype(object) for piece in pieces]
        return np.concatenate(pieces)

    def _piece(self, epoch: int, local: IntArray) -> Integers:
        if not self._ends_apart(epoch, int(local[-1])):
            return self._inside(epoch, local)
        closed = shrink(np.array([self._store.finished(epoch + 1)[self._index]], dtype=object))
        if local.size == 1:
            return closed
        inner = self._inside(epoch, local[:-1])
        return np.concatenate([inner, closed])  # of Python integers if one of the two is

    def _inside(self, epoch: int, local: IntArray) -> Integers:
        before = shrink(np.array([self._store.finished(epoch)[self._index]], dtype=object))
        process = self._store.processes("epoch", epoch)[self._index]
        consecutive = local[-1] - local[0] + 1 == local.size
        values = process.range(int(local[0]), int(local[-1]) + 1) if consecutive else process.at(local)
        return add(values, before)

    def _ends_apart(self, epoch: int, local: int) -> bool:
        """Whether a step is released from totals alone."""
        return self.layout.growth == "doubling" and local == self.layout.length(epoch) - 1

    # -- what is public -------------------------------------------------------------------------

    def parts(self, step: int) -> list[Part]:
        """Return the parts whose noises are added at a 0-based step, each rounded on its own.

        Raises:
            HorizonError: a step outside 0..2^62 - 1.
        """
        position = int(self._positions([step])[0])
        epoch = int(self.layout.epoch_of([position])[0])
        local = position - self.layout.start(epoch)
        closed = [self._store.closing(i) for i in range(epoch)]
        if self._ends_apart(epoch, local):
            return [*closed, self._store.closing(epoch)]
        return [*closed, ("epoch", epoch, local)]

    def process(self, kind: str, epoch: int) -> NoiseProcess:
        """Return the bounded process of a part: its noise at the part's local step is what is added."""
        return self._store.processes(kind, epoch)[self._index]

    def variance(self, steps: Any) -> FloatArray:
        """Return the variance of the released values at 0-based steps, in squared units of the count.

        For "doubling" with Gaussian halves of equal scale C it is C^2 (j + S_N S_m) inside epoch j, and
        C^2 (j + 1) at its end.
        """
        positions = self._positions(steps)
        result = np.empty(positions.shape)
        epochs = self.layout.epoch_of(positions)
        for epoch in np.unique(epochs).tolist():
            chosen = epochs == epoch
            local = positions[chosen] - self.layout.start(epoch)
            values = np.full(local.shape, self._store.finished_variance(epoch))
            apart = local == (self.layout.length(epoch) - 1 if self.layout.growth == "doubling" else -1)
            if apart.any():
                values[apart] = self._store.finished_variance(epoch + 1)
            if not apart.all():
                values[~apart] += self.process("epoch", epoch).variance(local[~apart])
            result[chosen] = values
        return result

    def covariance(self, first: int, second: int) -> float:
        """Return the covariance of the noise of two 0-based steps (before rounding).

        Raises:
            ParameterError: a process that cannot tell (it has no ``covariance``).
        """
        left = {part[:2]: part[2] for part in self.parts(first)}
        total = 0.0
        for kind, epoch, local in self.parts(second):
            if (kind, epoch) in left:
                known = getattr(self.process(kind, epoch), "covariance", None)
                if known is None:
                    raise ParameterError("the processes of this mechanism do not tell covariances")
                total += float(known(left[kind, epoch], local))
        return total

    def _positions(self, steps: Any) -> IntArray:
        array = numeric_array("steps", steps)
        if array.dtype.kind not in "iu" and array.size:
            raise ParameterError(f"steps must be integers, got dtype {array.dtype}")
        flat = np.atleast_1d(array).ravel()
        if flat.size and (flat.min() < 0 or flat.max() >= LAST_STEP):
            bad = int(flat.min()) if flat.min() < 0 else int(flat.max())
            raise HorizonError(f"step {bad} lies outside 0..2^62 - 1")
        return flat.astype(np.int64)
