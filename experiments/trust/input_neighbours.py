"""Entries of the tools around neighbouring streams."""

from __future__ import annotations

from typing import Any

from trilift.counters import neighbours
from trilift.experiments.trust.input_entries import (
    Entry,
    Want,
    entry,
    flag,
    maybe,
    number,
    steps,
    untried,
    whole,
    word,
)

__all__ = ["entries"]


def entries() -> list[Entry]:
    """Return the entries of all of them."""
    n = neighbours
    x, y = [1, 0, None], [1, 1, None]
    seed: dict[str, Want] = {"stream": steps(), "seed": whole(3)}
    ends: dict[str, Any] = {"low": number(0), "high": number(1, called="low")}
    letters: dict[str, Any] = {"stream": steps(), "alphabet": steps()}
    pairs: dict[str, Any] = {"stream": steps(), "other": steps(called="streams")}
    found = [
        entry(n.absorbing_step, {"stream": x, "at": 0}, stream=steps(), at=whole(0)),
        Entry(
            n.all_streams,
            lambda **k: list(n.all_streams(**k)),
            {"steps": 2},
            {"steps": whole(2), "alphabet": steps()},
        ),
        *(
            entry(f, {"stream": x, "other": y}, **pairs)
            for f in (n.are_edit_neighbours, n.are_extended_neighbours, n.are_prefix_neighbours)
        ),
        entry(n.are_all_step_neighbours, {"stream": [1, 0], "other": [1, 1]}, **pairs, change=number(1)),
        entry(
            n.are_step_neighbours, {"stream": [1, 0], "other": [1, 1]}, **pairs, change=number(1), k=whole(1)
        ),
        entry(
            n.follows_consecutively,
            {"stream": [1, 0], "other": [1, 1]},
            **pairs,
            change=number(1),
            k=whole(1),
        ),
        entry(n.is_insertion_of, {"stream": x, "other": y}, **pairs, extended=flag()),
        entry(n.as_stream, {}, stream=steps(), name=untried()),
        entry(
            n.insert,
            {"stream": x, "at": 0, "value": 1},
            stream=steps(),
            at=whole(0),
            value=maybe(number(1)),
            extended=flag(),
        ),
        entry(
            n.couple,
            {"checkpoints": [1, 3], "inserted": 1, "absorbed": 2},
            checkpoints=steps(called="inserted|absorbed"),
            inserted=whole(1, called="absorbed"),
            absorbed=whole(2, called="inserted"),
            to=word("base"),
        ),
        entry(n.decode_sums, {}, sums=steps()),
        entry(n.gaps, {}, checkpoints=steps()),
        entry(
            n.interval_sums,
            {"stream": x, "checkpoints": [1, 3]},
            stream=steps(called="checkpoints"),
            checkpoints=steps(),
        ),
        entry(
            n.sum_difference,
            {"base": x, "at": 0, "value": 1, "checkpoints": [1, 3]},
            base=steps(called="checkpoints"),
            at=whole(0),
            value=maybe(number(1)),
            checkpoints=steps(),
        ),
        entry(n.prefix_sums, {}, stream=steps()),
        entry(n.sparsity, {}, stream=steps()),
        entry(n.trits_to_bits, {}, trits=steps()),
        entry(n.witness, {}, difference=steps()),
        entry(
            n.random_stream,
            {"steps": 3, "seed": 1},
            steps=whole(3),
            seed=whole(3),
            alphabet=maybe(steps()),
            silence=number(0.5),
            places=whole(3),
        ),
        entry(
            n.random_updates,
            {"steps": 3, "items": 2, "seed": 1},
            steps=whole(3),
            items=whole(2),
            seed=whole(3),
            silence=number(0.5),
        ),
        entry(n.running_sum_differences, {}, steps=whole(2)),
        entry(n.random_edit_neighbour, {"stream": x, "seed": 1}, **seed, **ends, extended=flag()),
        entry(n.random_prefix_neighbour, {"stream": [1, 0], "seed": 1}, **seed, **ends),
        *(
            entry(f, {"stream": [1, 0], "seed": 1}, **seed, **ends, change=number(1))
            for f in (n.random_all_step_neighbour, n.random_consecutive_neighbour)
        ),
        entry(
            n.random_step_neighbour,
            {"stream": [1, 0], "seed": 1},
            **seed,
            **ends,
            change=number(1),
            k=whole(1),
        ),
        entry(
            n.sensitivity_set,
            {"steps": 2},
            steps=whole(2),
            relation=untried(),
            alphabet=steps(),
            function=untried(),
        ),
    ]
    for f, more in (
        (n.edit_neighbours, {}),
        (n.extended_neighbours, {}),
        (n.prefix_neighbours, {}),
        (n.insertion_neighbours, {"extended": flag()}),
        (n.step_neighbours, {"k": whole(1), "change": number(1)}),
    ):
        found.append(Entry(f, lambda f=f, **k: list(f(**k)), {"stream": [1, 0]}, {**letters, **more}))
    return found
