"""The bounded processes that epochs are made of: Laplace chains of shipped artifacts, one for each length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from trilift.counters.defaults import chain_of, default_names
from trilift.counters.levels import SavedLevel, restored_chain, saved_levels
from trilift.lift.budget import horizon_scales
from trilift.lift.chain import Chain
from trilift.lift.dyadic import Dyadic
from trilift.lift.errors import ReplayError
from trilift.lift.stage import Stage
from trilift.stream.epoch_layout import Layout
from trilift.stream.epochs import EpochNoise
from trilift.stream.keys import DigestBuilder
from trilift.stream.ledger import Ledger, make_ledger, restore_ledger
from trilift.stream.noise import Noise

__all__ = ["EpochRecord", "LaplaceEpochs", "epoch_names", "laplace_epochs", "single_step"]

_LONGEST = 10**15  # the planner's own limit; longer epochs take levels of 128
_LONG = 128


def epoch_names(length: int, *, objective: str) -> tuple[str, ...]:
    """Return names of shipped artifacts whose chain serves an epoch of this length, up to 2^62.

    >>> epoch_names(64, objective="max")
    ('direct-max-64',)
    >>> len(epoch_names(1 << 61, objective="max"))
    9
    """
    if length <= _LONGEST:
        return default_names(length, objective=objective)
    below = [f"stage-{objective}-{_LONG}"]
    while _LONG ** (len(below) + 1) < length:
        below.append(below[0])
    return (*below, f"direct-{objective}-{_LONG}")


def single_step() -> Chain:
    """Return the chain of one step, T_1 = 1 * 1: a total with noise of its own."""
    return Chain(Stage.plain(Dyadic([[1]]), Dyadic([[1]])))


@dataclass(frozen=True)
class EpochRecord:
    """What a saved state keeps of an epoch's counter: nothing that floats chose is chosen again.

    Attributes:
        names: artifacts, finest first.
        levels: their hashes and noise scales.
        digest: hexadecimal digest of the mechanism (:func:`trilift.stream.noise.mechanism_digest`).
    """

    names: tuple[str, ...]
    levels: tuple[SavedLevel, ...]
    digest: str


@dataclass
class LaplaceEpochs:
    """Epochs of pure differential privacy: an :class:`~trilift.stream.epochs.EpochMechanism`.

    Neighbours, guarantee: as :class:`trilift.stream.noise.Noise`, for each epoch's counter with ``epsilon`` (or
    with ``epsilon - total_epsilon`` for growth "doubling", whose totals have ``total_epsilon``). Every ledger is
    proved in rationals when its epoch is made, from the largest l1 norm of a column (not the l2 norm that the
    hybrid's Gaussian form has).

    Attributes:
        epsilon: the budget, exact.
        change: the most by which one input (or all of one person's together) changes, in l1.
        key: 32 secret bytes.
        stream_id: 16 bytes.
        total_epsilon: what the separate totals have: 0 for a relay.
        objective: "max" or "mean", what the epochs' chains are good for.
        input_places: inputs are multiples of 2^-input_places.
        places: output lattice, at least the inputs' own.
        saved: records of epochs that were made before: they are made from these again.
    """

    epsilon: Fraction
    change: Fraction
    key: bytes = field(repr=False)
    stream_id: bytes = field(repr=False)
    total_epsilon: Fraction = Fraction(0)
    objective: str = "mean"
    input_places: int = 0
    places: int = 0
    saved: Mapping[int, EpochRecord] = field(default_factory=dict)
    ledgers: dict[int, Ledger] = field(default_factory=dict, repr=False)
    records: dict[int, EpochRecord] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.records.update(self.saved)

    @property
    def identity(self) -> bytes:
        """32 bytes that bind the budgets, the change, the lattices and the objective."""
        digest = DigestBuilder("trilift/laplace epochs/1")
        digest.add("epsilon", self.epsilon).add("total epsilon", self.total_epsilon)
        digest.add("change", self.change).add("objective", self.objective)
        return digest.add("input places", self.input_places).add("places", self.places).digest()

    def counters(self, epoch: int, length: int, purposes: Sequence[str]) -> Sequence[Noise]:
        """Return the counters of an epoch, one a purpose.

        Raises:
            ReplayError: a saved epoch whose artifacts are gone, or whose mechanism is not the saved one.
        """
        share = self.epsilon - self.total_epsilon
        record = self.records.get(epoch)
        if record is None:
            names = epoch_names(length, objective=self.objective)
            chain = chain_of(names)
            scales = horizon_scales(chain, length, objective=self.objective)
            ledger = make_ledger(
                chain, share, scales=scales, change=self.change, input_places=self.input_places
            )
        else:
            _, chain = restored_chain(record.names, record.levels)
            pairs = [(level.scale, level.places) for level in record.levels]
            ledger = restore_ledger(
                chain, share, scales=pairs, change=self.change, input_places=self.input_places
            )
            names = record.names
        processes = self._family(chain, ledger, length, purposes)
        found = processes[0].digest.hex()
        if record is not None and record.digest != found:
            raise ReplayError(f"epoch {epoch} belongs to another mechanism; it is not continued")
        self.records[epoch] = EpochRecord(names, saved_levels(chain, ledger), found)
        self.ledgers[epoch] = ledger
        return processes

    def totals(self, epoch: int, purposes: Sequence[str]) -> Sequence[Noise]:
        """Return the totals of an epoch, one a purpose: processes of one step."""
        chain = single_step()
        ledger = make_ledger(
            chain, self.total_epsilon, scales=[1.0], change=self.change, input_places=self.input_places
        )
        return self._family(chain, ledger, 1, purposes)

    def _family(self, chain: Chain, ledger: Ledger, length: int, purposes: Sequence[str]) -> list[Noise]:
        return Noise.family(
            chain,
            ledger,
            horizon=length,
            key=self.key,
            stream_id=self.stream_id,
            purposes=purposes,
            places=self.places,
        )

    def spent(self, epoch: int) -> Fraction:
        """Return what an input of a made epoch spends, exact: its counter and its total."""
        own = self.ledgers[epoch].spent
        if not self.total_epsilon:
            return own
        total = make_ledger(
            single_step(),
            self.total_epsilon,
            scales=[1.0],
            change=self.change,
            input_places=self.input_places,
        )
        return own + total.spent


def laplace_epochs(
    epsilon: Fraction,
    *,
    key: bytes,
    stream_id: bytes,
    purposes: Sequence[str],
    growth: str = "relay",
    layout: Layout | None = None,
    change: Fraction = Fraction(1),
    objective: str = "mean",
    input_places: int = 0,
    places: int | None = None,
    saved: Mapping[int, EpochRecord] | None = None,
) -> tuple[list[EpochNoise], LaplaceEpochs]:
    """Return unbounded Laplace noises, one a purpose, and the mechanism that makes their epochs.

    Neighbours: streams of any length that differ in one input, by at most ``change``. Guarantee: (epsilon, 0),
    for all steps together, adaptive inputs included; composition and theorem as
    :class:`trilift.stream.epochs.EpochNoise`. Growth "doubling" gives half of epsilon to the totals.

    Args:
        epsilon: exact budget > 0.
        key: 32 secret bytes.
        stream_id: 16 bytes.
        purposes: paths that are unique per key, one for each independent noise.
        growth: "relay" or "doubling".
        layout: the epochs; the growth's own when left out.
        change: chi, the most by which one input changes.
        objective: "max" or "mean", for the epochs' chains.
        input_places: inputs are multiples of 2^-input_places.
        places: output lattice 2^-places, the inputs' when left out.
        saved: records of epochs that were made before.

    >>> from trilift.stream.keys import simulation_key
    >>> noises, made = laplace_epochs(
    ...     Fraction(1), key=simulation_key(3), stream_id=bytes(16), purposes=["example"]
    ... )
    >>> noises[0].at([5, 2**40]).shape, noises[0].horizon
    ((2,), None)
    >>> made.spent(0) <= 1
    True
    """
    chosen = Layout.of(growth) if layout is None else layout
    mechanism = LaplaceEpochs(
        epsilon=epsilon,
        change=change,
        key=key,
        stream_id=stream_id,
        total_epsilon=epsilon / 2 if chosen.growth == "doubling" else Fraction(0),
        objective=objective,
        input_places=input_places,
        places=input_places if places is None else places,
        saved={} if saved is None else saved,
    )
    return EpochNoise.family(chosen, mechanism, purposes=purposes), mechanism
