"""The bounded processes that epochs are made of: chains of shipped artifacts, one for each length of epoch.

Both laws of noise come in the same form; what differs is the norm of columns that a chain is charged by, and
how budgets add up: epsilons, or squares of mu.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from trilift.counters.defaults import chain_of
from trilift.counters.epoch_parts import EpochRecord, epoch_names, mu_parts, single_step
from trilift.counters.levels import restored_chain, saved_levels
from trilift.lift.budget import horizon_scales
from trilift.lift.chain import Chain
from trilift.lift.checks import rational
from trilift.lift.errors import ParameterError, ReplayError
from trilift.stream.epoch_layout import Layout
from trilift.stream.epochs import EpochNoise
from trilift.stream.keys import DigestBuilder
from trilift.stream.ledger import Ledger, make_ledger, restore_ledger
from trilift.stream.noise import Noise

__all__ = [
    "ChainEpochs",
    "EpochRecord",
    "GaussianEpochs",
    "LaplaceEpochs",
    "epoch_names",
    "gaussian_epochs",
    "laplace_epochs",
    "mu_parts",
    "single_step",
]

_RATIO = 460  # scales of all epochs are then within 2^-480 .. 2^480, what a ledger takes


@dataclass(kw_only=True)
class ChainEpochs(ABC):
    """Epochs of chains: an :class:`~trilift.stream.epochs.EpochMechanism`, without the law of the noise.

    Every ledger is proved in rationals when its epoch is made.

    Attributes:
        change: the most by which one input (or all of one person's together) changes, in l1.
        key: 32 secret bytes.
        stream_id: 16 bytes.
        objective: "max" or "mean", what the epochs' chains are good for.
        input_places: inputs are multiples of 2^-input_places.
        places: output lattice, at least the inputs' own.
        records: what was made so far, or is to be made again from a saved state.
    """

    change: Fraction
    key: bytes = field(repr=False)
    stream_id: bytes = field(repr=False)
    objective: str = "mean"
    input_places: int = 0
    places: int = 0
    records: dict[int, EpochRecord] = field(default_factory=dict, repr=False)
    costs: dict[tuple[str, int], Fraction] = field(default_factory=dict, repr=False)

    norm: ClassVar[str]

    def __post_init__(self) -> None:
        """Check that no epoch, however late, will need a noise scale that is refused.

        Raises:
            ParameterError: one might.
        """
        ratio = self.change / self._budget()
        if not self.records and not Fraction(1, 1 << _RATIO) <= ratio <= 1 << _RATIO:
            name = "epsilon" if self.norm == "l1" else "mu"
            raise ParameterError(
                f"change / {name} must be between 2^-{_RATIO} and 2^{_RATIO} without a horizon: noise scales"
                " grow from epoch to epoch"
            )

    @property
    def identity(self) -> bytes:
        """32 bytes that bind the budget, the change, the lattices and the objective."""
        digest = DigestBuilder("trilift/chain epochs/1").add("norm", self.norm).add("budget", self._budget())
        digest.add("change", self.change).add("objective", self.objective)
        return digest.add("input places", self.input_places).add("places", self.places).digest()

    @abstractmethod
    def _budget(self) -> Fraction:
        """Return epsilon or mu."""

    @abstractmethod
    def _parts(self, share: Fraction) -> tuple[Fraction, Fraction]:
        """Return the budgets of counter and total."""

    @abstractmethod
    def _ledger(self, chain: Chain, budget: Fraction, scales: Any) -> Any:
        """Make a ledger."""

    @abstractmethod
    def _restored(self, chain: Chain, budget: Fraction, scales: Sequence[tuple[int, int]]) -> Any:
        """Make a ledger again."""

    @abstractmethod
    def _family(self, chain: Chain, ledger: Any, length: int, purposes: Sequence[str]) -> Sequence[Any]:
        """Make processes."""

    @abstractmethod
    def _cost(self, ledger: Any) -> Fraction:
        """Return what a ledger spends: epsilon, or mu^2."""

    def counters(self, epoch: int, length: int, share: Fraction, purposes: Sequence[str]) -> Sequence[Any]:
        """Return the counters of an epoch, one a purpose.

        Raises:
            ReplayError: a saved epoch whose artifacts are gone, or whose mechanism is not the saved one.
        """
        budget = self._parts(share)[0]
        record = self.records.get(epoch)
        if record is None:
            names = epoch_names(length, objective=self.objective, norm=self.norm)
            chain = chain_of(names, norm=self.norm)
            scales = horizon_scales(chain, length, objective=self.objective, norm=self.norm)
            ledger = self._ledger(chain, budget, scales)
        else:
            names = record.names
            _, chain = restored_chain(names, record.levels, norm=self.norm)
            chain.check_horizon(length)
            ledger = self._restored(chain, budget, [(level.scale, level.places) for level in record.levels])
        processes = self._family(chain, ledger, length, purposes)
        found = processes[0].digest.hex()
        if record is not None and record.digest != found:
            raise ReplayError(f"epoch {epoch} belongs to another mechanism; it is not continued")
        self.records[epoch] = EpochRecord(names, saved_levels(chain, ledger), found)
        self.costs["epoch", epoch] = self._cost(ledger)
        return processes

    def totals(self, epoch: int, share: Fraction, purposes: Sequence[str]) -> Sequence[Any]:
        """Return the totals of an epoch, one a purpose: processes of one step."""
        chain = single_step()
        ledger = self._ledger(chain, self._parts(share)[1], [1.0])
        self.costs["total", epoch] = self._cost(ledger)
        return self._family(chain, ledger, 1, purposes)

    def spent(self, epoch: int, *, layout: Layout) -> Fraction:
        """Return what an input of an epoch that was made spends, exact: its counter and its total.

        It is an epsilon, or the square of a mu.
        """
        total = Fraction(0)
        if layout.shares[epoch]:
            total = self._cost(self._ledger(single_step(), self._parts(layout.shares[epoch])[1], [1.0]))
        return self.costs.get(("epoch", epoch), Fraction(0)) + total


@dataclass(kw_only=True)
class LaplaceEpochs(ChainEpochs):
    """Epochs of pure differential privacy, each with ``epsilon`` for its counter and its total together.

    Neighbours, guarantee, composition, theorem: as :class:`trilift.stream.epochs.EpochNoise`, of
    :class:`trilift.stream.noise.Noise`. Scales come from the largest l1 norm of a column, not from the l2
    norm of the hybrid's Gaussian form.

    Attributes:
        epsilon: the budget of an epoch, exact.
    """

    epsilon: Fraction
    norm: ClassVar[str] = "l1"

    def _budget(self) -> Fraction:
        return self.epsilon

    def _parts(self, share: Fraction) -> tuple[Fraction, Fraction]:
        return self.epsilon * (1 - share), self.epsilon * share

    def _ledger(self, chain: Chain, budget: Fraction, scales: Any) -> Ledger:
        return make_ledger(chain, budget, scales=scales, change=self.change, input_places=self.input_places)

    def _restored(self, chain: Chain, budget: Fraction, scales: Sequence[tuple[int, int]]) -> Ledger:
        return restore_ledger(
            chain, budget, scales=scales, change=self.change, input_places=self.input_places
        )

    def _family(self, chain: Chain, ledger: Any, length: int, purposes: Sequence[str]) -> Sequence[Any]:
        return Noise.family(
            chain,
            ledger,
            horizon=length,
            key=self.key,
            stream_id=self.stream_id,
            purposes=purposes,
            places=self.places,
        )

    def _cost(self, ledger: Any) -> Fraction:
        spent: Fraction = ledger.spent
        return spent


@dataclass(kw_only=True)
class GaussianEpochs(ChainEpochs):
    """Epochs of Gaussian noise, each mu-GDP for its counter and its total together: squares of mu add up.

    Neighbours, guarantee, composition, theorem: as :class:`trilift.stream.epochs.EpochNoise`, of
    :class:`trilift.stream.gaussian_noise.GaussianNoise`.

    Attributes:
        mu: the budget of an epoch, exact (:func:`trilift.stream.gdp.mu_for`).
        total_mu: None; or what every total has, and then ``mu`` is what every counter has: together
            sqrt(mu^2 + total_mu^2)-GDP.
    """

    mu: Fraction
    total_mu: Fraction | None = None
    norm: ClassVar[str] = "l2"

    def _budget(self) -> Fraction:
        return self.mu

    @property
    def identity(self) -> bytes:
        """32 bytes that bind the budgets, the change, the lattices and the objective."""
        if self.total_mu is None:
            return super().identity
        digest = DigestBuilder("trilift/chain epochs, halves/1").add("whole", super().identity)
        return digest.add("total mu", self.total_mu).digest()

    def _parts(self, share: Fraction) -> tuple[Fraction, Fraction]:
        if self.total_mu is not None:
            return self.mu, self.total_mu
        return mu_parts(self.mu, share)

    def _ledger(self, chain: Chain, budget: Fraction, scales: Any) -> Any:
        from trilift.stream.gaussian_ledger import make_gaussian_ledger

        return make_gaussian_ledger(
            chain, budget, scales=scales, change=self.change, input_places=self.input_places
        )

    def _restored(self, chain: Chain, budget: Fraction, scales: Sequence[tuple[int, int]]) -> Any:
        from trilift.stream.gaussian_ledger import restore_gaussian_ledger

        return restore_gaussian_ledger(
            chain, budget, scales=scales, change=self.change, input_places=self.input_places
        )

    def _family(self, chain: Chain, ledger: Any, length: int, purposes: Sequence[str]) -> Sequence[Any]:
        from trilift.stream.gaussian_noise import GaussianNoise

        return GaussianNoise.family(
            chain,
            ledger,
            horizon=length,
            key=self.key,
            stream_id=self.stream_id,
            purposes=purposes,
            places=self.places,
        )

    def _cost(self, ledger: Any) -> Fraction:
        spent: Fraction = ledger.spent_sq
        return spent


def laplace_epochs(
    epsilon: Any,
    *,
    key: bytes,
    stream_id: bytes,
    purposes: Sequence[str],
    growth: str = "tapered",
    layout: Layout | None = None,
    change: Any = 1,
    objective: str = "mean",
    input_places: int = 0,
    places: int | None = None,
    saved: Mapping[int, EpochRecord] | None = None,
) -> tuple[list[EpochNoise], LaplaceEpochs]:
    """Return unbounded Laplace noises, one a purpose, and the mechanism that makes their epochs.

    Neighbours: streams of any length that differ in one input, by at most ``change``. Guarantee: (epsilon,
    0), for all steps together, adaptive inputs included; composition and theorem as
    :class:`trilift.stream.epochs.EpochNoise`.

    Args:
        epsilon: budget > 0, taken as the rational that it is.
        key: 32 secret bytes.
        stream_id: 16 bytes.
        purposes: paths that are unique per key, one for each independent noise.
        growth: "tapered", "relay" or "doubling".
        layout: the epochs; the growth's own when left out.
        change: chi, the most by which one input changes.
        objective: "max" or "mean", for the epochs' chains.
        input_places: inputs are multiples of 2^-input_places.
        places: output lattice 2^-places, the inputs' when left out.
        saved: records of epochs that were made before: they are made from these again.

    >>> from trilift.stream.keys import simulation_key
    >>> noises, made = laplace_epochs(1, key=simulation_key(3), stream_id=bytes(16), purposes=["example"])
    >>> noises[0].at([5, 2**40]).shape, noises[0].horizon
    ((2,), None)
    >>> made.spent(0, layout=noises[0].layout) <= 1
    True
    """
    mechanism = LaplaceEpochs(
        epsilon=rational("epsilon", epsilon, above=0),
        change=rational("change", change, above=0),
        key=key,
        stream_id=stream_id,
        objective=objective,
        input_places=input_places,
        places=input_places if places is None else places,
        records=dict(saved or {}),
    )
    chosen = Layout.of(growth) if layout is None else layout
    return EpochNoise.family(chosen, mechanism, purposes=purposes), mechanism


def gaussian_epochs(
    mu: Any,
    *,
    key: bytes,
    stream_id: bytes,
    purposes: Sequence[str],
    growth: str = "tapered",
    total_mu: Any = None,
    layout: Layout | None = None,
    change: Any = 1,
    objective: str = "mean",
    input_places: int = 0,
    places: int | None = None,
    saved: Mapping[int, EpochRecord] | None = None,
) -> tuple[list[EpochNoise], GaussianEpochs]:
    """Return unbounded Gaussian noises, one a purpose, and the mechanism that makes their epochs.

    Neighbours: streams of any length that differ in one input, by at most ``change``. Guarantee: mu-GDP, for
    all steps together, adaptive inputs included; composition and theorem as
    :class:`trilift.stream.epochs.EpochNoise`. Arguments as :func:`laplace_epochs`, with mu for epsilon.
    With ``total_mu`` the counters have mu and the totals total_mu, and the guarantee is sqrt(mu^2 +
    total_mu^2).

    >>> from trilift.stream.keys import simulation_key
    >>> noises, made = gaussian_epochs(1, key=simulation_key(3), stream_id=bytes(16), purposes=["example"])
    >>> noises[0].range(0, 9).size, made.spent(1, layout=noises[0].layout) <= 1
    (9, True)
    """
    mechanism = GaussianEpochs(
        mu=rational("mu", mu, above=0),
        total_mu=None if total_mu is None else rational("total_mu", total_mu, above=0),
        change=rational("change", change, above=0),
        key=key,
        stream_id=stream_id,
        objective=objective,
        input_places=input_places,
        places=input_places if places is None else places,
        records=dict(saved or {}),
    )
    chosen = Layout.of(growth, law="gaussian") if layout is None else layout
    return EpochNoise.family(chosen, mechanism, purposes=purposes), mechanism
