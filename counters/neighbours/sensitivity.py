"""Exact sensitivity sets S = {f(x) - f(x') : x ~ x'} of small streams, by listing every pair of neighbours.

For running sums over {0, 1, BOT}, the set under edit neighbours is exactly {0,1}^T and {0,-1}^T together:
every single sum has sensitivity 1, the whole vector sqrt(T) in l2 and T in l1. Over {0, 1} the set under
prefix-sum neighbours is the same. :func:`witness` gives the pair of streams for each vector.

Source: "Edit-Neighboring Data Streams and Privacy under Continual Observation" (Andersson, Chaturvedi,
Henzinger, Safavi) for the containment and the use of the set; the equality and its witnesses are new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from trilift.counters.neighbours.edit import edit_neighbours
from trilift.counters.neighbours.prefix import prefix_neighbours
from trilift.counters.neighbours.streams import (
    Number,
    Stream,
    all_streams,
    as_alphabet,
    as_stream,
    plain,
    prefix_sums,
)
from trilift.counters.neighbours.swap import step_neighbours
from trilift.lift.checks import choice
from trilift.lift.errors import ParameterError

__all__ = [
    "Difference",
    "l1_sensitivity",
    "l2_sensitivity_squared",
    "running_sum_differences",
    "sensitivity_set",
    "witness",
]

Difference = tuple[Number, ...]
Relation = Callable[..., Iterable[Stream]]
"""Called as relation(stream, alphabet=...): the neighbours of a stream over an alphabet."""

_RELATIONS: dict[str, Relation] = {
    "edit": edit_neighbours,
    "prefix": prefix_neighbours,
    "swap": step_neighbours,
}


def sensitivity_set(
    steps: int,
    *,
    relation: str | Relation = "edit",
    alphabet: Iterable[Any] = (0, 1, None),
    function: Callable[[Stream], Iterable[Any]] = prefix_sums,
) -> frozenset[Difference]:
    """Return {f(x) - f(x') : x ~ x'} over all streams of so many steps.

    Args:
        steps: number of steps T (small: every stream is listed).
        relation: "edit", "prefix", "swap" (one step, by at most 1), or a function
            ``relation(stream, alphabet=...)`` that yields the neighbours of a stream.
        alphabet: letters of the streams.
        function: f, from a stream to a vector; exact numbers, or floats that are taken for what they are.

    Raises:
        ParameterError: an unknown relation, too many streams, values of f of two lengths.

    >>> sorted(sensitivity_set(1))
    [(-1,), (0,), (1,)]
    >>> sorted(sensitivity_set(2, relation="swap", alphabet=[0, 1]))
    [(-1, -1), (0, -1), (0, 1), (1, 1)]
    """
    neighbours = _RELATIONS[choice("relation", relation, _RELATIONS)] if not callable(relation) else relation
    letters = as_alphabet(alphabet)
    values: dict[Stream, Difference] = {}

    def value(stream: Stream) -> Difference:
        if stream not in values:
            values[stream] = tuple(plain(entry, name="value of the function") for entry in function(stream))
        return values[stream]

    found: set[Difference] = set()
    for stream in all_streams(steps, alphabet=letters):
        here = value(stream)
        for other in neighbours(stream, alphabet=letters):
            there = value(other)
            if len(there) != len(here):
                raise ParameterError(f"the function has values of {len(here)} and {len(there)} entries")
            found.add(tuple(plain(x - y, name="difference") for x, y in zip(here, there, strict=True)))
    return frozenset(found)


def running_sum_differences(steps: int) -> frozenset[Difference]:
    """Return {0,1}^T and {0,-1}^T together: the set of running sums under edit and prefix-sum neighbours.

    >>> sorted(running_sum_differences(2))
    [(-1, -1), (-1, 0), (0, -1), (0, 0), (0, 1), (1, 0), (1, 1)]
    """
    signed = (all_streams(steps, alphabet=(0, sign)) for sign in (1, -1))
    return frozenset(tuple(entry or 0 for entry in z) for vectors in signed for z in vectors)


def l1_sensitivity(differences: Iterable[Difference]) -> Number:
    """Return the largest sum of |d_t| of a sensitivity set (0 for an empty one).

    >>> l1_sensitivity(running_sum_differences(3))
    3
    """
    return max((plain(sum(abs(d) for d in vector), name="norm") for vector in differences), default=0)


def l2_sensitivity_squared(differences: Iterable[Difference]) -> Number:
    """Return the largest sum of d_t^2 of a sensitivity set (0 for an empty one), exactly.

    >>> l2_sensitivity_squared(running_sum_differences(3))
    3
    """
    return max((plain(sum(d * d for d in vector), name="norm") for vector in differences), default=0)


def witness(difference: Iterable[Any]) -> tuple[Stream, Stream]:
    """Return edit neighbours (x, x') over {0, 1} whose running sums differ by a given vector.

    For z in {0,1}^T: x'_t = 1 - z_t, and 1 is inserted at the first step. For -z: x'_t = z_t, and 0 is.

    Args:
        difference: a vector of {0,1}^T or {0,-1}^T, T >= 1.

    Raises:
        ParameterError: any other vector: no pair of edit neighbours over {0, 1, BOT} has it.

    >>> witness([1, 0, 1])
    ((1, 0, 1), (0, 1, 0))
    """
    z = as_stream(difference, name="difference")
    up = bool(z) and all(entry in (0, 1) for entry in z)
    if not up and not (z and all(entry in (0, -1) for entry in z)):
        raise ParameterError("difference must be a vector of zeros and ones, or of zeros and minus ones")
    other = tuple(1 - (entry or 0) if up else -(entry or 0) for entry in z)
    return (int(up), *other[:-1]), other
