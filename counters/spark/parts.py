"""What Python workers do with the rows of a batch: totals of parts, and the released sums of a task's rows.

The engine sends every row here once, unsorted, with all rows of a part in one task. Places are sorted, steps
counted, sums and noise made in arrays: a row costs the engine no comparison and no window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from trilift.counters.frames.spec import Columns
from trilift.counters.spark.executor import (
    Integers,
    Noises,
    Places,
    checked_inputs,
    codes_of,
    gathered,
    shown_values,
)
from trilift.counters.spark.release import Release
from trilift.lift.errors import ParameterError
from trilift.stream.fast.switch import kernels

__all__ = ["RunningSums", "Totals"]

_BLOCK = 1 << 17  # rows: of noise that is made together, and of a batch that goes back

_WORDS = 1 << 10  # of keystream that a step of a small group takes, about

_TIES = (
    "rows of one group have the same place in order=: name columns that tell them apart, since which of them "
    "comes first would be up to the engine"
)
_NULLS = "order: an ordering column has nulls, and where they belong nobody knows"
_SURPLUS = "a person has more than max_contributions = {} rows"
_NOBODY = "a row is nobody's: column {!r} has no value there"


class Totals:
    """Rows and sums of parts, of some rows: for ``mapInArrow``. The engine adds them up.

    Args:
        release: whose inputs they are.
        names: columns that say which part it is.
        counted: names of the columns of the result that hold rows and sum.
    """

    def __init__(self, release: Release, names: Sequence[str], counted: tuple[str, str]) -> None:
        self.release, self.names, self.counted = release, tuple(names), counted

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield for each part that occurs its names, rows and sum, in this order.

        Raises:
            ParameterError: an input that is not acceptable.
        """
        import pyarrow

        inner = Noises.of(self.release).inner
        for table in gathered(batches):
            inputs = checked_inputs(table.column(self.release.value), inner)
            names = [table.column(name) for name in self.names]
            groups, codes = codes_of(names, len(inputs))
            sums = np.zeros(len(groups), dtype=np.int64)
            np.add.at(sums, codes, inputs)
            first = pyarrow.array(np.unique(codes, return_index=True)[1])
            counts = np.bincount(codes, minlength=len(groups)).astype(np.int64)
            columns = [*(column.take(first) for column in names), *map(pyarrow.array, (counts, sums))]
            named = pyarrow.Table.from_arrays(columns, names=[*self.names, *self.counted])
            yield from named.to_batches()


class RunningSums:
    """Released running sums of the rows of a task: for ``mapInArrow``.

    Args:
        release: whose sums and noise they are.
        columns: that are used.
        shown: columns to pass on.
        part: column that tells the parts of a group.
        offsets: columns of what a part's group has before it, rows and sum; None where nothing is cut.
        number: column that counts the rows of a person, null where the row is nobody's; None: not looked at.
        most: rows of a person.
    """

    def __init__(
        self,
        release: Release,
        columns: Columns,
        shown: Sequence[str],
        *,
        part: str,
        offsets: tuple[str, str] | None,
        number: str | None,
        most: int,
    ) -> None:
        self.release, self.columns, self.shown, self.part = release, columns, tuple(shown), part
        self.offsets, self.number, self.most = offsets, number, most

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the rows in order, part by part, with the released column.

        Raises:
            ParameterError, HorizonError: rows that are not acceptable. Their values are not in the message.
        """
        import pyarrow

        held = list(batches)
        if not sum(batch.num_rows for batch in held):
            return
        table = pyarrow.Table.from_batches(held)
        del held
        noises = Noises.of(self.release)
        inputs = checked_inputs(table.column(self.release.value), noises.inner)
        self._check_people(table)
        places = [table.column(name) for name in self.columns.order]
        _check_places(places)
        by = (*self.columns.by, self.part)
        groups, codes = codes_of([table.column(name) for name in by], len(inputs))
        order, at_same_place = _sorted(codes, len(groups), places)
        if at_same_place:
            raise ParameterError(_TIES)
        begins = np.searchsorted(codes[order], np.arange(len(groups) + 1))
        sizes = np.diff(begins)
        steps = np.arange(len(order)) - np.repeat(begins[:-1], sizes)
        sums = np.cumsum(inputs[order])
        # What is summed wraps at worst over several parts; differences within one are right.
        sums -= np.repeat(sums[begins[:-1]] - inputs[order[begins[:-1]]], sizes)
        if self.offsets is not None:
            firsts = order[begins[:-1]]
            for name, counted in zip(self.offsets, (steps, sums), strict=True):
                counted += np.repeat(table.column(name).to_numpy()[firsts], sizes)
        noise = _noise(noises, groups, begins, steps)
        released = shown_values(noises.inner, sums, noise)
        shown = table.select(list(self.shown)).take(pyarrow.array(order))
        yield from shown.append_column(noises.inner._columns.name, released).to_batches(max_chunksize=_BLOCK)

    def _check_people(self, table: Any) -> None:
        if self.number is None:
            return
        numbers = table.column(self.number)
        if numbers.null_count:
            raise ParameterError(_NOBODY.format(self.columns.person))
        if numbers.to_numpy().max() > self.most:
            raise ParameterError(_SURPLUS.format(self.most))


def _noise(noises: Noises, groups: list[tuple[Any, ...]], begins: Places, steps: Places) -> Integers:
    """Return the noise of the steps of parts, which begin where ``begins`` has it."""
    # A worker has many small groups, whose noise would take long to be much: the task knows that it will be.
    kernels(len(steps) * _WORDS)
    noise: Integers = np.zeros(len(steps), dtype=np.int64)
    for index, (*group, _) in enumerate(groups):
        for begin in range(int(begins[index]), int(begins[index + 1]), _BLOCK):
            end = min(begin + _BLOCK, int(begins[index + 1]))
            some = noises.at(tuple(group), steps[begin:end])
            if some.dtype == object:
                noise = noise.astype(object)
            noise[begin:end] = some
    return noise


def _check_places(places: Sequence[Any]) -> None:
    import pyarrow

    for column in places:
        nothing = column.null_count
        if pyarrow.types.is_floating(column.type):
            nothing = nothing or np.isnan(column.to_numpy()).any()
        if nothing:
            raise ParameterError(_NULLS)


def _sorted(codes: Places, groups: int, places: Sequence[Any]) -> tuple[Places, bool]:
    """Return the rows in order, by code and place, and whether two of one code have the same place."""
    whole = [_as_whole(column) for column in places]
    keys = [codes, *(column for column in whole if column is not None)]
    if len(keys) <= len(places):  # texts, decimals and the like: slower, whatever they are
        return _sorted_any(codes, places)
    if len(keys) == 2:
        low, high = int(keys[1].min()), int(keys[1].max())
        if (high - low + 1) * groups < 1 << 62:
            joined = codes * (high - low + 1) + (keys[1] - low)
            order: Places = np.argsort(joined)
            joined = joined[order]
            return order, bool((joined[1:] == joined[:-1]).any())
    order = np.lexsort(keys[::-1])
    same = np.ones(max(len(order) - 1, 0), dtype=bool)
    for key in keys:
        key = key[order]
        same &= key[1:] == key[:-1]
    return order, bool(same.any())


def _as_whole(column: Any) -> Places | None:
    """Return integers, dates and times as 64-bit integers in the same order; of other types None."""
    import pyarrow

    kind = column.type
    if pyarrow.types.is_date32(kind):
        column, kind = column.cast(pyarrow.int32()), pyarrow.int32()
    if pyarrow.types.is_timestamp(kind):
        column, kind = column.cast(pyarrow.int64()), pyarrow.int64()
    if not pyarrow.types.is_signed_integer(kind):
        return None
    whole: Places = column.to_numpy().astype(np.int64)
    return whole


def _sorted_any(codes: Places, places: Sequence[Any]) -> tuple[Places, bool]:
    import pyarrow
    import pyarrow.compute

    names = [str(index) for index in range(len(places) + 1)]
    table = pyarrow.Table.from_arrays([pyarrow.chunked_array([codes]), *places], names=names)
    order = pyarrow.compute.sort_indices(table, sort_keys=[(name, "ascending") for name in names])
    table = table.take(order)
    same = np.ones(max(len(codes) - 1, 0), dtype=bool)
    for name in names:
        column = table.column(name)
        same &= pyarrow.compute.equal(column.slice(1), column.slice(0, len(same))).to_numpy()
    return order.to_numpy().astype(np.int64), bool(same.any())
