"""The noise beneath an edit mechanism: which process, at which budget, and what its tails are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np
from trilift.artifacts import load_stage, load_stage_l2
from trilift.counters.edit.tails import gaussian_quantile
from trilift.counters.state_file import exact_number
from trilift.lift import Chain, row_norms_sq
from trilift.lift.checks import choice, integer
from trilift.lift.errors import HorizonError, ParameterError
from trilift.stream.epochs import EpochNoise
from trilift.stream.keys import simulation_key
from trilift.stream.ledger import MAX_PLACES
from trilift.stream.process import NoiseProcess
from trilift.stream.rounded import RoundedOnce

__all__ = [
    "BOUNDED",
    "GAUSSIAN",
    "KINDS",
    "UNBOUNDED",
    "BaseSpec",
    "chain_ledger",
    "level_scales",
    "public_epochs",
    "row_places",
    "spec_chain",
    "unit_scale",
]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

BOUNDED = ("toeplitz", "l2-chain", "chain")
UNBOUNDED = ("cc", "gaussian-tapered", "tapered", "relay", "doubling")
KINDS = (*BOUNDED, *UNBOUNDED)
GAUSSIAN = ("toeplitz", "l2-chain", "cc", "gaussian-tapered")

_EXACT_ROWS = 4096
_FINER = 20  # places below the output lattice at which the parts of epochs are rounded, each by itself
_PARTS = 128  # no layout has as many epochs
_PUBLIC = bytes(16)


@dataclass(frozen=True)
class BaseSpec:
    """One noise process, indexed by buckets 0, 1, ..., for prefix sums whose inputs change.

    Attributes:
        kind: bounded "toeplitz", "l2-chain" (Gaussian), "chain" (Laplace); unbounded "cc",
            "gaussian-tapered" (Gaussian), "tapered", "relay", "doubling" (Laplace).
        capacity: number of buckets; None for an unbounded kind.
        mu: Gaussian kinds: mu-GDP when one input changes by ``change``, totals of epochs included.
        epsilon: Laplace kinds: epsilon-DP when one input changes by ``change``.
        change: largest change of one input.
        names: artifacts of a chain, finest first.
        scales: proportions of the noise scales of a chain's levels, finest first.
    """

    kind: str
    capacity: int | None
    mu: Fraction | None = None
    epsilon: Fraction | None = None
    change: Fraction = Fraction(1)
    names: tuple[str, ...] = ()
    scales: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        choice("base", self.kind, KINDS)
        if (self.kind in BOUNDED) != (self.capacity is not None):
            raise ParameterError(f"a base of kind {self.kind!r} and a capacity of {self.capacity} do not fit")
        if (self.kind in GAUSSIAN) != (self.mu is not None) or (self.mu is None) == (self.epsilon is None):
            raise ParameterError(f"a base of kind {self.kind!r} has exactly one budget: mu or epsilon")

    @property
    def gaussian(self) -> bool:
        """Whether the noise is Gaussian."""
        return self.kind in GAUSSIAN

    def build(
        self, *, key: bytes, stream_id: bytes, purpose: str, places: int = 0, input_places: int = 0
    ) -> NoiseProcess:
        """Return the process.

        Args:
            key: 32 secret bytes.
            stream_id: 16 bytes.
            purpose: path that is unique per key.
            places: binary places of the output lattice, at least ``input_places``.
            input_places: inputs are multiples of 2^-input_places.
        """
        process: NoiseProcess = _build(
            self, purpose=purpose, places=places, input_places=input_places, key=key, stream_id=stream_id
        )
        return process

    def sd(self, indices: Any) -> FloatArray:
        """Return standard deviations at 0-based bucket indices, rounding to integers left out.

        Raises:
            HorizonError: an index past the capacity.
        """
        where = np.atleast_1d(np.asarray(indices, dtype=np.int64))
        if where.size and (where.min() < 0 or (self.capacity is not None and where.max() >= self.capacity)):
            raise HorizonError(f"buckets are numbered from 0 to {self.capacity} - 1")
        return _sd(self, where)

    def delays(self, start: int, stop: int, ln_failures: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return integers alpha with Pr[alpha_l + N_l <= 0] <= e^ln_failure_l, N_l rounded to integers.

        floor(N + 1/2) <= -alpha only if N < 1/2 - alpha, so alpha is the upper quantile of N plus 1/2,
        rounded up. The parts of epochs are rounded before that, on a lattice of 2^-20: at most half a step of
        it a part is added for them.

        Args:
            start: 0-based bucket.
            stop: one past the last bucket.
            ln_failures: ln of what each may fail with, shape (stop - start,), below ln(1/2).
        """
        wanted = np.asarray(ln_failures, dtype=np.float64)
        if not np.all(wanted < -1.0):
            raise ParameterError("delays need failures below 1/e")
        if self.gaussian:
            x = _sd(self, np.arange(start, stop)) * gaussian_quantile(wanted) + _rounding(self, stop)
        else:
            from trilift.counters.edit.base_tails import laplace_quantiles  # which is about bases

            x = laplace_quantiles(self, start, stop, wanted)
        if self.capacity is None:
            x = x + _PARTS * 2.0 ** -(_FINER + 1)
        return np.ceil(x * (1.0 + 1e-9) + 0.5 + 1e-9).astype(np.int64)

    def tail_quantile(self, index: int, ln_failure: float) -> float:
        """Return x with Pr[N_index <= -x] <= e^ln_failure, one-sided, as a bound; N before rounding."""
        wanted = np.array([float(ln_failure)])
        if self.gaussian:
            bound = _sd(self, np.array([index])) * gaussian_quantile(wanted) + _rounding(self, index + 1)
            return float(bound[0]) * (1.0 + 1e-9)
        from trilift.counters.edit.base_tails import laplace_quantiles

        return float(laplace_quantiles(self, index, index + 1, wanted)[0]) * (1.0 + 1e-9)

    def record(self) -> dict[str, Any]:
        """Return all of it for JSON, exact numbers as strings (floats keep every digit there)."""
        return {
            "kind": self.kind,
            "capacity": self.capacity,
            "mu": None if self.mu is None else str(self.mu),
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "change": str(self.change),
            "names": list(self.names),
            "scales": [float(scale).hex() for scale in self.scales],
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """Restore a specification: nothing is chosen anew."""
        mu, epsilon = record["mu"], record["epsilon"]
        return cls(
            record["kind"],
            None if record["capacity"] is None else integer("capacity", record["capacity"], minimum=1),
            None if mu is None else exact_number(mu),
            None if epsilon is None else exact_number(epsilon),
            exact_number(record["change"]),
            tuple(record["names"]),
            tuple(float.fromhex(scale) for scale in record["scales"]),
        )


@lru_cache(maxsize=32)
def spec_chain(kind: str, names: tuple[str, ...]) -> Chain:
    """Return the exact chain of artifacts of a kind."""
    load = load_stage_l2 if kind == "l2-chain" else load_stage
    loaded = {name: load(name) for name in names}
    return Chain(loaded[names[-1]], [loaded[name] for name in names[:-1]])


def _build(spec: BaseSpec, *, purpose: str, places: int, input_places: int, **common: Any) -> Any:
    if spec.kind == "toeplitz":
        from trilift.stream.toeplitz_noise import ToeplitzNoise

        return ToeplitzNoise(
            spec.capacity or 0,
            mu=spec.mu,
            change=spec.change,
            input_places=input_places,
            places=places,
            purpose=purpose,
            **common,
        )
    if spec.kind in BOUNDED:
        chain = spec_chain(spec.kind, spec.names)
        lattice: dict[str, Any] = {"horizon": spec.capacity, "places": places, "purpose": purpose}
        ledger: Any = chain_ledger(spec, input_places=input_places)
        if spec.kind == "chain":
            from trilift.stream.noise import Noise

            return Noise(chain, ledger, **lattice, **common)
        from trilift.stream.gaussian_noise import GaussianNoise

        return GaussianNoise(chain, ledger, **lattice, **common)
    finer = min(places + _FINER, MAX_PLACES)
    fine = _epochs(spec, purpose=purpose, places=finer, input_places=input_places, **common)
    return RoundedOnce(fine, places=places)


def chain_ledger(spec: BaseSpec, *, input_places: int = 0) -> Any:
    """Return the exact ledger of a bounded chain, Laplace or Gaussian."""
    chain = spec_chain(spec.kind, spec.names)
    options: dict[str, Any] = {"scales": spec.scales, "change": spec.change, "input_places": input_places}
    if spec.kind == "chain":
        from trilift.stream.ledger import make_ledger

        return make_ledger(chain, spec.epsilon, **options)
    from trilift.stream.gaussian_ledger import make_gaussian_ledger

    return make_gaussian_ledger(chain, spec.mu, **options)


def _epochs(
    spec: BaseSpec, *, key: bytes, stream_id: bytes, purpose: str, places: int, input_places: int
) -> EpochNoise:
    options: dict[str, Any] = {
        "key": key,
        "stream_id": stream_id,
        "change": spec.change,
        "places": places,
        "input_places": input_places,
    }
    if spec.gaussian:
        from trilift.counters.edit.toeplitz_epochs import toeplitz_epochs

        return toeplitz_epochs(spec.kind, spec.mu or Fraction(0), purpose=purpose, **options)
    from trilift.counters.epoch_mechanisms import laplace_epochs

    noises, _ = laplace_epochs(spec.epsilon or Fraction(0), purposes=[purpose], growth=spec.kind, **options)
    return noises[0]


@lru_cache(maxsize=8)
def public_epochs(kind: str) -> EpochNoise:
    """A Laplace process at epsilon = 1 under a key that everybody knows: for what is public about it."""
    return _epochs(
        BaseSpec(kind, None, epsilon=Fraction(1)),
        key=simulation_key(0),
        stream_id=_PUBLIC,
        purpose="public",
        places=64,  # no rounding to speak of in its variance
        input_places=0,
    )


def unit_scale(spec: BaseSpec) -> float:
    """By how much a Laplace process is larger than that of epsilon = 1, at most.

    Both have the same proportions of scales, rounded up by less than a relative 2^-10 (MIN_SCALE of ledgers).
    """
    return float(spec.change / (spec.epsilon or 1)) * (1.0 + 2.0**-10)


# -- standard deviations ------------------------------------------------------------------------------


def _sd(spec: BaseSpec, where: Any) -> FloatArray:
    if spec.kind == "toeplitz":
        return np.asarray(_toeplitz_sigma(spec) * np.sqrt(_toeplitz_rows(spec.capacity or 0)[where]))
    if spec.kind in BOUNDED:
        norms = row_norms_sq(spec_chain(spec.kind, spec.names).to_float(), where)
        scales = level_scales(spec)
        factor = 2.0 if spec.kind == "chain" else 1.0
        return np.asarray(np.sqrt(factor * scales**2 @ norms))
    if spec.gaussian:
        from trilift.counters.edit.toeplitz_epochs import toeplitz_epoch_sd

        return toeplitz_epoch_sd(
            spec.kind, float(spec.mu or 1) * (1.0 - 1e-4), where, change=float(spec.change)
        )
    return np.asarray(np.sqrt(public_epochs(spec.kind).variance(where)) * unit_scale(spec))


@lru_cache(maxsize=16)
def _toeplitz_rows(size: int) -> FloatArray:
    """Return bounds on the squared norms of the rows of L, exact to rounding for up to 4096 steps.

    Beyond, those of the square root itself, raised by a relative 2e-4: the dyadic factor's differ from them
    by less than half of that up to 2^20 steps (:mod:`trilift.stream.toeplitz_factor`), and take a second to
    compute.
    """
    if size <= _EXACT_ROWS:
        from trilift.stream.toeplitz_factor import left_row_norms_sq

        return left_row_norms_sq(size)
    r = np.cumprod(np.concatenate([[1.0], 1.0 - 0.5 / np.arange(1, size)]))
    return np.asarray(np.cumsum(r * r) * (1.0 + 2e-4))


@lru_cache(maxsize=64)
def _toeplitz_sigma(spec: BaseSpec) -> float:
    from trilift.stream.toeplitz_noise import toeplitz_sigma

    return float(toeplitz_sigma(spec.capacity or 0, mu=spec.mu, change=spec.change))


@lru_cache(maxsize=64)
def _scales_of(spec: BaseSpec) -> tuple[float, ...]:
    return tuple(float(scale) for scale in chain_ledger(spec).scales)


@lru_cache(maxsize=64)
def row_places(spec: BaseSpec) -> tuple[tuple[int, ...], ...]:
    """The row lattices of every level: -1 for rows that are not measured."""
    return tuple(level.places for level in chain_ledger(spec).levels)


def level_scales(spec: BaseSpec) -> FloatArray:
    """Return the noise scales of a bounded chain's levels, finest first."""
    return np.array(_scales_of(spec))


def _rounding(spec: BaseSpec, stop: int) -> float:
    """What the rounding of drawn Gaussians can add to a step's noise, in all.

    Toeplitz: |L_t|_1 / 2 lattice steps of 2^-32, |L_t|_1 <= 2 sqrt(t) + 1. Chains: half a lattice step a
    draw, and a level's noise scale is at least 2^10 of its steps: |row|_1 times scale / 2^11.
    """
    if spec.kind != "l2-chain":
        return (2.0 * math.sqrt(stop) + 1.0) * 2.0**-32 * 64
    chain = spec_chain(spec.kind, spec.names).to_float()
    scales = level_scales(spec)
    rows = [np.abs(stage.A).sum(axis=1).max() + np.abs(stage.g).sum() for stage in chain.levels]
    return float(scales @ np.array(rows)) * 2.0**-11
