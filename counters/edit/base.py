"""The noise beneath an edit mechanism: which process, at which budget, and what its tails are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np
from trilift.artifacts import load_stage, load_stage_l2
from trilift.counters.edit.tails import gaussian_quantile, grouped_quantiles, laplace_quantile
from trilift.lift import Chain, level_max_row_norms_sq, row_norms_sq
from trilift.lift.checks import choice
from trilift.lift.errors import HorizonError, ParameterError
from trilift.lift.rows import row_entries
from trilift.stream.epochs import EpochNoise
from trilift.stream.keys import simulation_key
from trilift.stream.process import NoiseProcess

__all__ = [
    "BOUNDED",
    "GAUSSIAN",
    "KINDS",
    "UNBOUNDED",
    "BaseSpec",
    "chain_ledger",
    "octave_ends",
    "spec_chain",
]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

BOUNDED = ("toeplitz", "l2-chain", "chain")
UNBOUNDED = ("cc", "gaussian-tapered", "tapered", "relay", "doubling")
KINDS = (*BOUNDED, *UNBOUNDED)
GAUSSIAN = ("toeplitz", "l2-chain", "cc", "gaussian-tapered")

_EXACT_TAILS = 1024  # more buckets than this share bounds on their tails
_EXACT_ROWS = 4096
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
        return _build(self, key, stream_id, purpose, places, input_places)

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
        """Return the least integers alpha found with Pr[alpha_l + N_l <= 0] <= e^ln_failure_l, N_l rounded to integers.

        floor(N + 1/2) <= -alpha only if N < 1/2 - alpha, so alpha is the upper quantile of N plus 1/2,
        rounded up.

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
            x = _laplace_quantiles(self, start, stop, wanted)
        return np.ceil(x * (1.0 + 1e-9) + 0.5 + 1e-9).astype(np.int64)

    def tail_quantile(self, index: int, ln_failure: float) -> float:
        """Return x with Pr[N_index <= -x] <= e^ln_failure, one-sided, as a bound; N before rounding."""
        wanted = np.array([float(ln_failure)])
        if self.gaussian:
            bound = _sd(self, np.array([index])) * gaussian_quantile(wanted) + _rounding(self, index + 1)
            return float(bound[0]) * (1.0 + 1e-9)
        return float(_laplace_quantiles(self, index, index + 1, wanted)[0]) * (1.0 + 1e-9)

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
            record["capacity"],
            None if mu is None else Fraction(mu),
            None if epsilon is None else Fraction(epsilon),
            Fraction(record["change"]),
            tuple(record["names"]),
            tuple(float.fromhex(scale) for scale in record["scales"]),
        )


@lru_cache(maxsize=32)
def spec_chain(kind: str, names: tuple[str, ...]) -> Chain:
    """Return the exact chain of artifacts of a kind."""
    load = load_stage_l2 if kind == "l2-chain" else load_stage
    loaded = {name: load(name) for name in names}
    return Chain(loaded[names[-1]], [loaded[name] for name in names[:-1]])


def _build(
    spec: BaseSpec, key: bytes, stream_id: bytes, purpose: str, places: int, input_places: int
) -> NoiseProcess:
    common: dict[str, Any] = {"key": key, "stream_id": stream_id}
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
    return _epochs(spec, purpose=purpose, places=places, input_places=input_places, **common)


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
def _public_epochs(spec: BaseSpec) -> EpochNoise:
    """The process under a key that everybody knows: for what is public about it."""
    return _epochs(
        spec,
        key=simulation_key(0),
        stream_id=_PUBLIC,
        purpose="public",
        places=64,  # no rounding to speak of in its variance
        input_places=0,
    )


# -- standard deviations ------------------------------------------------------------------------------


def _sd(spec: BaseSpec, where: Any) -> FloatArray:
    if spec.kind == "toeplitz":
        return _toeplitz_sigma(spec) * np.sqrt(_toeplitz_rows(spec.capacity or 0)[where])
    if spec.kind in BOUNDED:
        norms = row_norms_sq(spec_chain(spec.kind, spec.names).to_float(), where)
        scales = _level_scales(spec)
        factor = 2.0 if spec.kind == "chain" else 1.0
        return np.asarray(np.sqrt(factor * scales**2 @ norms))
    if spec.gaussian:
        from trilift.counters.edit.toeplitz_epochs import toeplitz_epoch_sd

        return toeplitz_epoch_sd(
            spec.kind, float(spec.mu or 1) * (1.0 - 1e-4), where, change=float(spec.change)
        )
    return np.sqrt(_public_epochs(spec).variance(where))


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
def _places(spec: BaseSpec) -> tuple[tuple[int, ...], ...]:
    """The row lattices of every level: -1 for rows that are not measured."""
    return tuple(level.places for level in chain_ledger(spec).levels)


def _level_scales(spec: BaseSpec) -> FloatArray:
    return np.array(_scales_of(spec))


def _rounding(spec: BaseSpec, stop: int) -> float:
    """What the rounding of drawn Gaussians can add to a step's noise, in all.

    Toeplitz: |L_t|_1 / 2 lattice steps of 2^-32, |L_t|_1 <= 2 sqrt(t) + 1. Chains: half a lattice step a
    draw, and a level's noise scale is at least 2^10 of its steps: |row|_1 times scale / 2^11.
    """
    if spec.kind != "l2-chain":
        return (2.0 * math.sqrt(stop) + 1.0) * 2.0**-32 * 64
    chain = spec_chain(spec.kind, spec.names).to_float()
    scales = _level_scales(spec)
    rows = [np.abs(stage.A).sum(axis=1).max() + np.abs(stage.g).sum() for stage in chain.levels]
    return float(scales @ np.array(rows)) * 2.0**-11


# -- tails of Laplace noise ---------------------------------------------------------------------------


def _laplace_quantiles(spec: BaseSpec, start: int, stop: int, wanted: FloatArray) -> FloatArray:
    if spec.capacity is None:
        ends = octave_ends(start, stop)
        pairs = zip(ends.tolist(), wanted.tolist(), strict=True)
        return np.array([_epoch_quantile(spec, end, failure) for end, failure in pairs])
    chain = spec_chain(spec.kind, spec.names).to_float()
    if spec.capacity > _EXACT_TAILS:
        return _by_groups([_group_bounds(chain, _level_scales(spec), spec.capacity)], wanted)
    steps = [np.array([math.ldexp(1.0, -p) if p >= 0 else 0.0 for p in entry]) for entry in _places(spec)]
    values = []
    for index, failure in zip(range(start, stop), wanted.tolist(), strict=True):
        coefficients, lattice = [], 0.0
        for scale, step, row in zip(_level_scales(spec), steps, row_entries(chain, index), strict=True):
            for block in row.values():
                coefficients.append(scale * block)
                lattice += float(np.abs(block) @ step)
        values.append(laplace_quantile(np.concatenate(coefficients), failure, lattice=lattice))
    return np.array(values)


def _group_bounds(chain: Chain, scales: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """Return for every level the largest sum a^2 and the largest |a| over the first ``count`` steps.

    A coefficient is a convex combination of entries of A's rows and of g, so no larger than the largest.
    """
    sums = scales**2 * level_max_row_norms_sq(chain, count)
    tops = [
        scale * max(float(np.abs(stage.A).max()), float(np.abs(stage.g).max(initial=0.0)))
        for scale, stage in zip(scales, chain.levels, strict=True)
    ]
    return np.asarray(sums), np.array(tops)


def _by_groups(groups: list[tuple[FloatArray, FloatArray]], wanted: FloatArray) -> FloatArray:
    sums = np.concatenate([sums for sums, _ in groups])
    tops = np.concatenate([tops for _, tops in groups])
    used = sums > 0
    unique, where = np.unique(wanted, return_inverse=True)
    columns = np.repeat(sums[used][:, None], unique.size, axis=1)
    return np.asarray(grouped_quantiles(columns, tops[used], unique)[where])


def octave_ends(start: int, stop: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return for every bucket the end of its quarter octave; those in one share a bound on their tails.

    >>> octave_ends(0, 12).tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 10, 12, 12]
    """
    index = np.arange(start, stop, dtype=np.int64)
    bits = np.maximum(np.frexp(np.maximum(index, 1).astype(np.float64))[1] - 3, 0).astype(np.int64)
    return np.asarray(((index >> bits) + 1) << bits)


@lru_cache(maxsize=4096)
def _epoch_quantile(spec: BaseSpec, end: int, ln_failure: float) -> float:
    """A bound for all buckets before ``end`` within its quarter octave, from what their epochs are made of."""
    noise = _public_epochs(spec)
    worst = 0.0
    first, last = end - max(1 << max((end - 1).bit_length() - 3, 0), 1), end - 1
    layout = noise.layout
    for epoch in range(int(layout.epoch_of([first])[0]), int(layout.epoch_of([last])[0]) + 1):
        groups = []
        final = min(last, layout.ends[epoch] - 1)
        for kind, number, local in noise.parts(final):
            process: Any = noise.process(kind, number)
            chain, scales = process.chain.to_float(), np.array([float(s) for s in process.ledger.scales])
            if (kind, number) == ("epoch", epoch):
                groups.append(_group_bounds(chain, scales, local + 1))
            else:
                norms = scales**2 * row_norms_sq(chain, [local])[:, 0]
                groups.append((norms, _group_bounds(chain, scales, local + 1)[1]))
        if layout.shares[epoch] > 0 and layout.length(epoch) > 1:  # its last step shows its total
            inside = max(final - (final == layout.ends[epoch] - 1), layout.start(epoch))
            process = noise.process("epoch", epoch)
            chain, scales = process.chain.to_float(), np.array([float(s) for s in process.ledger.scales])
            groups.append(_group_bounds(chain, scales, inside - layout.start(epoch) + 1))
        worst = max(worst, float(_by_groups(groups, np.array([ln_failure]))[0]))
    return worst
