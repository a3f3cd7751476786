"""Data-independent mechanisms, and carrying their noise over to other problems.

M is *data-independent* for f if M(x) is distributed as f(x) + Z with one Z for all x. Lifting lemma: if such
an M is (epsilon, delta)-private for a relation P with sensitivity set S_P = {f(x) - f(x') : x ~ x'}, then
f'(x) + Z is (epsilon, delta)-private for every f' and P' with S_P' inside S_P. Proof: for x ~' x' there are
neighbours u ~ u' with f(u) - f(u') = f'(x) - f'(x') = v, and the pair (f'(x) + Z, f'(x') + Z) is the pair
(f(u) + Z, f(u') + Z) moved by the constant f'(x') - f(u').

That the noise of a mechanism does not look at its input is a claim about all inputs. The test here runs the
mechanism with one seed on several inputs: a difference disproves the claim, no difference supports it.

Source: "Edit-Neighboring Data Streams and Privacy under Continual Observation" (Andersson, Chaturvedi,
Henzinger, Safavi), lower bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trilift.counters.neighbours.sensitivity import Difference
from trilift.counters.neighbours.streams import Number, Stream, as_stream, plain, prefix_sums
from trilift.lift.errors import ParameterError

__all__ = ["Lifted", "Release", "is_data_independent", "lift", "noise_of"]

Function = Callable[[Any], Iterable[Any]]


class Release(Protocol):
    """A mechanism as a function: release(stream, seed) -> one number for each entry of f(stream)."""

    def __call__(self, stream: Any, seed: int, /) -> Iterable[Any]:
        """Run on a whole stream with the noise that the seed decides."""


def noise_of(release: Release, *, stream: Any, seed: int, function: Function = prefix_sums) -> Difference:
    """Return y - f(x), exactly, for what a mechanism releases with a seed.

    Args:
        release: the mechanism.
        stream: x.
        seed: decides the noise.
        function: f.

    Raises:
        ParameterError: a release that is not one finite number for each entry of f(x).

    >>> noise_of(lambda stream, seed: [5.5, 6], stream=(1, 1), seed=0)
    (Fraction(9, 2), 4)
    """
    exact = [plain(value, name="value of the function") for value in function(stream)]
    outputs = as_stream(release(stream, seed), name="release")
    if len(outputs) != len(exact) or None in outputs:
        raise ParameterError(f"a release must be {len(exact)} numbers, got {len(outputs)} entries")
    return tuple(plain((y or 0) - s, name="noise") for y, s in zip(outputs, exact, strict=True))


def is_data_independent(
    release: Release,
    *,
    streams: Sequence[Any],
    seeds: Iterable[int] = (0, 1, 2),
    function: Function = prefix_sums,
    tolerance: float = 0.0,
) -> bool:
    """Tell whether y - f(x) is the same for all of the given inputs, seed by seed.

    Args:
        release: the mechanism.
        streams: at least two inputs of one length, which should differ in their sums and their timing.
        seeds: the seeds to try.
        function: f.
        tolerance: how far apart the noise may be: 0 for mechanisms with exact sums, some units in the last
            place for those that compute s + Z in floats.

    Returns:
        False disproves data independence; True means that these inputs did not.

    Raises:
        ParameterError: fewer than two inputs, or no seed.

    >>> inputs = [(0, 0), (1, 1)]
    >>> is_data_independent(lambda x, seed: [s + seed for s in prefix_sums(x)], streams=inputs)
    True
    >>> is_data_independent(lambda x, seed: [s * (1 + seed) for s in prefix_sums(x)], streams=inputs)
    False
    """
    tried = list(seeds)
    if len(streams) < 2 or not tried:
        raise ParameterError("data independence needs at least two streams and one seed to look at")
    for seed in tried:
        first, *others = (noise_of(release, stream=x, seed=seed, function=function) for x in streams)
        for other in others:
            if len(other) != len(first):
                raise ParameterError("the streams must have values of one length")
            if any(not -tolerance <= a - b <= tolerance for a, b in zip(first, other, strict=True)):
                return False
    return True


@dataclass(frozen=True)
class Lifted:
    """The noise of a data-independent mechanism on another problem: made by :func:`lift`.

    Attributes:
        release: the mechanism whose noise is used.
        base: an input of it.
        base_function: what it approximates.
        function: what is approximated here.
    """

    release: Release
    base: Stream
    base_function: Function
    function: Function

    def __call__(self, stream: Any, seed: int, /) -> tuple[Number, ...]:
        """Return f'(stream) + Z.

        Raises:
            ParameterError: f'(stream) has another length than Z.
        """
        noise = noise_of(self.release, stream=self.base, seed=seed, function=self.base_function)
        values = [plain(value, name="value of the function") for value in self.function(stream)]
        if len(values) != len(noise):
            raise ParameterError(f"the function has {len(values)} entries, the noise has {len(noise)}")
        return tuple(plain(v + z, name="release") for v, z in zip(values, noise, strict=True))


def lift(
    release: Release,
    *,
    base: Iterable[Any],
    sensitivity: Iterable[Difference],
    lifted_sensitivity: Iterable[Difference],
    function: Function,
    base_function: Function = prefix_sums,
) -> Lifted:
    """Reuse the noise of a data-independent mechanism for another function and relation.

    Neighbours, epsilon and delta: what ``release`` guarantees for the relation of ``sensitivity`` holds for
    the result and the relation of ``lifted_sensitivity``. One seed is for one of the two, once: released with
    both, they compose.

    Args:
        release: a data-independent mechanism for ``base_function`` (that is the caller's claim).
        base: any input of it, say zeros; its length is that of the streams to come.
        sensitivity: S_P of ``base_function``.
        lifted_sensitivity: S_P' of ``function``.
        function: f', of any input, with as many entries as ``base_function`` has.
        base_function: f.

    Raises:
        ParameterError: S_P' is not inside S_P.

    >>> from trilift.counters.neighbours import difference_stream, sensitivity_set
    >>> counts = lift(
    ...     lambda x, seed: [s + seed for s in prefix_sums(x)],
    ...     base=(0, 0),
    ...     sensitivity=sensitivity_set(2, relation="prefix", alphabet=[0, 1]),
    ...     lifted_sensitivity=sensitivity_set(2, relation="prefix", alphabet=[-1, 0, 1]),
    ...     function=lambda log: prefix_sums(difference_stream(log)),
    ... )
    >>> counts([("+", "a"), ("-", "a")], 7)
    (8, 7)
    """
    covered = set(sensitivity)
    # equal values need no noise at all
    missing = {d for d in lifted_sensitivity if d not in covered and any(d)}
    if missing:
        raise ParameterError(
            f"the noise does not cover {len(missing)} differences of the new problem, {min(missing)} for one"
        )
    return Lifted(release, as_stream(base, name="base"), base_function, function)
