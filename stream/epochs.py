"""Noise without an end, made of bounded processes, one an epoch: the hybrid mechanism, and new ones.

An unbounded stream is cut into epochs (:mod:`trilift.stream.epoch_layout`), and every epoch has a bounded
counter of its own, with a key of its own. Its noise at local step m is N_j(m), m = 0 .. n_j - 1. What the
counter of an epoch counts is that epoch's inputs alone; what is released at a step adds to it the totals of
the epochs before. Where do those totals come from? Either an epoch's total is released once more, with noise
M_j of its own, and a share a_j of the epoch's budget pays for it; or (a_j = 0) the last value of the epoch's
own counter stands for it, N_j(n_j - 1), and nothing is split off. With Q_j for whichever of the two it is,

    noise(t) = Q_0 + .. + Q_(j-1) + N_j(m),   and Q_0 + .. + Q_j at the last step of an epoch with a_j > 0.

**doubling** (Chan, Shi, Song 2011, hybrid mechanism; in the form of Andersson, Chaturvedi, Henzinger, Safavi:
CC). Lengths 1, 2, 4, ..., all a_j = 1/2.

**relay** (new). All a_j = 0; n_(j+1) = n_j^(3/2).

**tapered** (new, the default). The first epochs have a_j = 0 (Laplace noise); then a_j falls like the inverse
of the logarithm of the epoch's length, since a total's variance 2/(a_j epsilon)^2 need only be small beside
that of a counter that long, about log(n_j)^3.

*Privacy.* Let counter j be a release of R_j x_j + z_j, x_j the inputs of epoch j, that is (1 - a_j)
epsilon-private for streams that differ in one input (mu^2 (1 - a_j) in place of mu^2, if it is GDP), with L_j
R_j = T exactly, and M_j a release of the sum of x_j that is a_j epsilon-private (mu^2 a_j). All z_j and M_j
are independent. Everything released is a function of these releases, one pair an epoch. Neighbours that
differ in one input differ in one x_j: all pairs but one have the same law on both sides, given everything
before, and that pair costs epsilon (mu) by composition. So the whole is epsilon-private (mu-GDP): parallel
composition. Inputs may be chosen adaptively, as in each of the epochs. An infinite sequence is covered
because each of its finite prefixes is, with the same epsilon. A person whose inputs change by chi in total,
chi_j of it in epoch j, costs sum_j (chi_j / chi) epsilon = epsilon; under GDP sqrt(sum_j (chi_j / chi)^2) mu
<= mu.

*Error.* A counter of n steps has variance about c log(n)^3 (Laplace; c log(n)^2 for Gaussian noise). The
hybrid pays the even split: a factor 4 in variance for Laplace noise, 2 for Gaussian noise. A relay with
n_(j+1) = n_j^r pays a factor of at most r^3 + 1 / (1 - r^-3) (r^2 and r^-2): finished epochs are a geometric
series, the current one is calibrated for at most the r-th power of t. The tapered shares a_j = 4/k, k =
log2(n_j), with n_j four times n_(j-1), pay (1 - 4/k)^-2 on the counter and sum 2 k^2 / 16 = k^3 / 48 for the
totals, which is a fixed fraction of the counter's variance. ``python -m trilift.experiments.unbounded``
prints exact ones.

*Why not one smooth infinite chain.* A chain with infinitely many levels needs budgets epsilon_l with a finite
sum, so the level that serves t of size m^k has epsilon_k = o(epsilon / k): its variance exceeds that of the
chain for t by a factor that grows without bound (zeta(1 + d)^2 k^(2 d) with epsilon_l ~ l^-(1+d)). The
factors above are bounded.

*Rounding.* Each part is rounded on its own, floor(u + 1/2) of exact u, and parts are added as integers. The
counts are multiples of the lattice h, so floor(u / h + 1/2) of (count + noise) is count / h + floor(noise / h
+ 1/2): integers go through the floor unchanged, and what is released is the exact sum of the parts' releases.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from fractions import Fraction
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

_KEPT = 16  # processes of epochs that are held at once: what one call for many coordinates may cross
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

    def counters(
        self, epoch: int, length: int, share: Fraction, purposes: Sequence[str]
    ) -> Sequence[NoiseProcess]:
        """Return independent processes of ``length`` steps, one a purpose: the counter of an epoch.

        Its budget is all but the share of the epoch's total.
        """
        ...

    def totals(self, epoch: int, share: Fraction, purposes: Sequence[str]) -> Sequence[NoiseProcess]:
        """Return independent processes of one step, one a purpose: the epoch's total, share > 0."""
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
                share = self.layout.shares[epoch]
                if kind == "total":
                    known = self.mechanism.totals(epoch, share, names)
                else:
                    known = self.mechanism.counters(epoch, self.layout.length(epoch), share, names)
                if any(process.places != self.mechanism.places for process in known):
                    raise ParameterError("the processes of all epochs must share one output lattice")
                self._kept[kind, epoch] = known
            self._kept.move_to_end((kind, epoch))
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return known

    def closing(self, epoch: int) -> Part:
        """Return the part that stands for a finished epoch."""
        if self.layout.shares[epoch] > 0:
            return "total", epoch, 0
        return "epoch", epoch, self.layout.length(epoch) - 1

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

    Neighbours: two streams, of any length, that differ in one input by at most what the mechanism's budget
    is for. Guarantee: adding ``noise.at(t)`` to every exact prefix sum has the privacy of the mechanism's
    budget, (epsilon, 0) for Laplace and mu-GDP for Gaussian noise, for all steps together and adaptively
    chosen inputs.
    Composition: parallel over epochs, sequential over an epoch's counter and its total.
    Theorem: "doubling", Chan, Shi, Song 2011; the others are new (proof in the text of this module).

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
        for share in store.layout.shares:
            digest.add("share", share)
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
        if not self.layout.closes_apart(epoch, int(local[-1])):
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
        if self.layout.closes_apart(epoch, local):
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
            apart = (local == self.layout.length(epoch) - 1) & (self.layout.shares[epoch] > 0)
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
