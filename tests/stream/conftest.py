"""Small exact chains, sources of draws that tests can choose, and what a chain does to them by definition.

The oracles here are written from the definitions in plain Fractions and share no code with the stream room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from random import Random
from typing import Any

import numpy as np
import pytest
from trilift.lift.chain import Chain
from trilift.lift.dyadic import Dyadic
from trilift.lift.stage import Stage, lower_ones
from trilift.stream.evaluate import Evaluator
from trilift.stream.keys import simulation_key
from trilift.stream.keystream import Keystream
from trilift.stream.laplace import LaplaceRows
from trilift.stream.ledger import Ledger, make_ledger

Array = np.ndarray[Any, np.dtype[Any]]
Rows = dict[tuple[int, int], list[int]]  # (level, block) -> integers of the measured rows


class Chosen:
    """Draws given one by one; anything not given is zero."""

    def __init__(self, counts: Sequence[int], rows: Rows) -> None:
        self.counts, self.rows = list(counts), rows

    def block(self, level: int, block: int) -> list[int]:
        return self.rows.get((level, block), [0] * self.counts[level])

    def draws(self, level: int, blocks: Array) -> Batch:
        return Batch([self.block(level, int(block)) for block in blocks], self.counts[level])

    def plus(self, more: Rows) -> Chosen:
        keys = self.rows.keys() | more.keys()
        added = Chosen(self.counts, more)
        return Chosen(
            self.counts,
            {key: [a + b for a, b in zip(self.block(*key), added.block(*key), strict=True)] for key in keys},
        )


class Batch:
    float_error = 0.0

    def __init__(self, values: list[list[int]], count: int) -> None:
        self.values, self.count = values, count

    def to_float(self) -> Array:
        return np.array([[float(x) for x in row] for row in self.values]).reshape(-1, self.count)

    def block(self, index: int) -> list[int]:
        return list(self.values[index])


class Keyed:
    """The real sampler, under a given key or a public one."""

    def __init__(self, ledger: Ledger, key: bytes | int) -> None:
        self.stream = Keystream(simulation_key(key) if isinstance(key, int) else key)
        self.levels = [LaplaceRows(entry.row_scales) for entry in ledger.levels]

    def draws(self, level: int, blocks: Array) -> Any:
        return self.levels[level].sample(self.stream, level, blocks)


class Lab:
    """Makers and oracles."""

    Chosen, Keyed = Chosen, Keyed

    # -- making -------------------------------------------------------------------------------------

    def weights(self, rng: np.random.Generator, m: int, places: int) -> Dyadic:
        """Weights on the lattice 2^-places, the extremes often."""
        num = rng.integers(0, (1 << places) + 1, size=m)
        num[rng.random(m) < 0.3] = rng.integers(0, 2) << places
        return Dyadic(num, places)

    def integral(self, rng: np.random.Generator, m: int, *, plain: bool = False, moves: int = 3) -> Stage:
        """A stage on a unimodular integer B: few binary places everywhere, so that exact ties are common."""
        B, inverse = np.eye(m, dtype=np.int64), np.eye(m, dtype=np.int64)
        for _ in range(moves if m > 1 else 0):
            i, j = rng.choice(m, size=2, replace=False)
            c = int(rng.choice([-1, 1]))
            B[i] += c * B[j]
            inverse[:, j] -= c * inverse[:, i]
        w, v = self._w_and_v(rng, m, plain, w_places=1, v_places=1)
        A = self._target(w, v) @ Dyadic(inverse)
        return Stage(A, Dyadic(B), w, Dyadic(inverse.T) @ v)

    def completed(self, rng: np.random.Generator, m: int, *, plain: bool = False) -> Stage:
        """A stage completed as in the specification: rows B, 2^e Delta and 2^f rho on their own lattices.

        Few bits, so that Delta and rho are large; rows that vanish stay in.
        """
        b, a, eta, nu, omega, e, f = (
            int(x) for x in rng.integers((1, 4, 4, 1, 1, 0, 0), (6, 9, 9, 4, 4, 5, 5))
        )
        B_float = np.eye(m) + rng.normal(size=(m, m)) * 0.5 / m
        B = Dyadic.round(B_float, b)
        w, v = self._w_and_v(rng, m, plain, w_places=omega, v_places=nu)
        g = Dyadic.round(np.linalg.solve(B_float.T, v.to_float()), eta) if np.any(v.num) else Dyadic.zeros(m)
        target = self._target(w, v)
        A = Dyadic.round(target.to_float() @ np.linalg.inv(B_float), a)
        delta, rho = target - A @ B, v - B.T @ g
        unit = Dyadic(np.eye(m, dtype=np.int64)).scaled(-e)
        parts_A, parts_B, parts_g = [A, unit], [B, delta.scaled(e)], [g, Dyadic.zeros(m)]
        if not plain:
            parts_A.append(Dyadic.zeros((m, 1)))
            parts_B.append(rho.scaled(f)[None, :])
            parts_g.append(Dyadic([1], f) if np.any(rho.num) else Dyadic.zeros(1))
        A, B, g = (
            Dyadic.concatenate(parts_A, axis=1),
            Dyadic.concatenate(parts_B),
            Dyadic.concatenate(parts_g),
        )
        return Stage(A, B, w, g)

    def _w_and_v(
        self, rng: np.random.Generator, m: int, plain: bool, *, w_places: int, v_places: int
    ) -> tuple[Dyadic, Dyadic]:
        if plain:
            return Dyadic.zeros(m), Dyadic.zeros(m)
        w = self.weights(rng, m, w_places)
        if rng.random() < 0.5:  # a tail, sometimes only a tail
            num = np.array(w.num)
            num[: int(rng.integers(0, m + 1))] = 0
            w = Dyadic(num, w_places)
        return w, Dyadic.zeros(m) if rng.random() < 0.25 else self.weights(rng, m, v_places)

    def _target(self, w: Dyadic, v: Dyadic) -> Dyadic:
        one = Dyadic(np.ones(w.shape[0], dtype=np.int64))
        return Dyadic(lower_ones(w.shape[0])) - w[:, None] * (one - v)[None, :]

    def chain(self, seed: int, *, levels: int | None = None, ties: bool | None = None) -> Chain:
        """A random exact chain of 1 to 3 levels, sizes 2 to 4, the top 1 to 3."""
        rng = np.random.default_rng(seed)
        count = int(rng.integers(1, 4)) if levels is None else levels
        integral = bool(rng.random() < 0.4) if ties is None else ties
        make = self.integral if integral else self.completed
        stages = [make(rng, int(rng.integers(2, 5))) for _ in range(count - 1)]
        return Chain(make(rng, int(rng.integers(1, 4 if count > 1 else 12)), plain=True), stages)

    def ledger(self, chain: Chain, epsilon: Any = 1, **options: Any) -> Ledger:
        return make_ledger(chain, epsilon, scales=[1.0] * len(chain.levels), **options)

    @lru_cache(maxsize=512)  # noqa: B019 one instance in all
    def case(self, seed: int, epsilon: Fraction, input_places: int, ties: bool) -> tuple[Chain, Ledger]:
        chain = self.chain(seed, ties=ties)
        return chain, self.ledger(chain, epsilon, input_places=input_places)

    def random_draws(self, ledger: Ledger, counts: Sequence[int], seed: int, kind: str) -> Chosen:
        """Draws of ``counts[level]`` blocks a level: "zero", "noise" (about the scale), "huge", or "half":

        multiples of one half in units of the count, so that noise on few binary places meets exact ties.
        """
        random, rows = Random(seed), {}
        for level, (entry, blocks) in enumerate(zip(ledger.levels, counts, strict=True)):
            for block in range(blocks):
                rows[level, block] = [
                    self._draw(random, kind, entry.places[row], scale)
                    for row, scale in zip(entry.measured, entry.row_scales, strict=True)
                ]
        return Chosen([len(entry.measured) for entry in ledger.levels], rows)

    def _draw(self, random: Random, kind: str, places: int, scale: int) -> int:
        if kind == "zero":
            return 0
        if kind == "half":
            return random.randint(-5, 5) << max(places - 1, 0)
        scale <<= 70 if kind == "huge" else 0
        return random.randint(-5 * scale, 5 * scale)

    def blocks(self, chain: Chain) -> list[int]:
        """More blocks a level than the capacity touches."""
        return [
            capacity // level.size + 2 for capacity, level in zip(chain.capacities, chain.levels, strict=True)
        ]

    # -- oracles ------------------------------------------------------------------------------------

    @lru_cache(maxsize=512)  # noqa: B019
    def _fractions(self, stage: Stage) -> tuple[list[list[Fraction]], list[Fraction]]:
        """B as Fractions, and v = B^T g."""
        B = stage.B.fractions().tolist()
        g = stage.g.fractions().tolist()
        return B, [
            sum((row[i] * x for row, x in zip(B, g, strict=True)), Fraction(0)) for i in range(stage.size)
        ]

    def measured(self, chain: Chain, ledger: Ledger, d: Sequence[Fraction]) -> Rows:
        """Return R d as integers on each measured row's own lattice; asserts that it lies on it."""
        rows: Rows = {}
        values = list(d)
        for level, (stage, entry) in enumerate(zip(chain.levels, ledger.levels, strict=True)):
            B, v = self._fractions(stage)
            m, top = stage.size, level == len(chain.levels) - 1
            blocks = [values[a : a + m] for a in range(0, len(values), m)][: 1 if top else None]
            blocks = [block + [Fraction(0)] * (m - len(block)) for block in blocks]
            for j, block in enumerate(blocks):
                image = [sum((b * x for b, x in zip(row, block, strict=True)), Fraction(0)) for row in B]
                assert all(image[i] == 0 for i in range(len(B)) if i not in entry.measured)
                scaled = [image[i] * (1 << entry.places[i]) for i in entry.measured]
                assert all(x.denominator == 1 for x in scaled), "R d is off the row's lattice"
                rows[level, j] = [int(x) for x in scaled]
            own = [sum(((1 - q) * x for q, x in zip(v, block, strict=True)), Fraction(0)) for block in blocks]
            late = [sum((q * x for q, x in zip(v, block, strict=True)), Fraction(0)) for block in blocks]
            values = [a + b for a, b in zip([*own, Fraction(0)], [Fraction(0), *late], strict=True)]
        return rows

    def noise(self, chain: Chain, ledger: Ledger, source: Any, step: int, level: int = 0) -> Fraction:
        """Return N at a step from the definition, in Fractions."""
        if step < 0:
            return Fraction(0)
        stage, entry = chain.levels[level], ledger.levels[level]

        def value(coefficients: Dyadic, block: int) -> Fraction:
            if block < 0:
                return Fraction(0)
            z = source.draws(level, np.array([block])).block(0)
            terms = zip(coefficients.fractions()[list(entry.measured)], z, entry.measured, strict=True)
            return sum((a * Fraction(x, 1 << entry.places[i]) for a, x, i in terms), Fraction(0))

        if level == len(chain.levels) - 1:
            return value(stage.A[step], 0)
        block, digit = divmod(step, stage.size)
        w = stage.w[digit].fraction()
        total = value(stage.A[digit], block) + (1 - w) * value(stage.g, block - 1)
        if w != 1:
            total += (1 - w) * self.noise(chain, ledger, source, block - 1, level + 1)
        return total + w * self.noise(chain, ledger, source, block, level + 1) if w else total

    def sums(self, d: Sequence[Fraction], places: int) -> list[int]:
        """Return T d in units of 2^-places."""
        total, result = Fraction(0), []
        for x in d:
            total += x
            result.append(total * (1 << places))
        assert all(x.denominator == 1 for x in result)
        return [int(x) for x in result]

    def rounded_by(
        self, rule: Callable[[Fraction], int], chain: Chain, ledger: Ledger, source: Any, *, steps: int
    ) -> list[int]:
        """Noise of the first steps in units of 1, the exact N put through a rounding rule."""
        evaluator = Evaluator(chain, ledger, source)
        exact = (evaluator.exact(t) for t in range(steps))
        return [rule(Fraction(num, 1 << places)) for num, places in exact]


@pytest.fixture(scope="session")
def lab() -> Lab:
    return Lab()
