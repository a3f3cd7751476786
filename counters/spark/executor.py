"""What the executors' Python workers do: inputs to lattice steps, and noise for steps of groups."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from trilift.counters.frames import PrivateCumsum
from trilift.counters.frames.groups import encode_group
from trilift.counters.released import as_array, post_process
from trilift.counters.spark.release import Release
from trilift.lift.errors import ParameterError
from trilift.lift.integers import add, shift_left
from trilift.stream.chain_noise import ChainNoise
from trilift.stream.process import NoiseProcess

__all__ = ["Inputs", "Noises", "Released", "checked_inputs", "codes_of", "gathered", "shown_values"]

Integers = np.ndarray[Any, np.dtype[Any]]
Places = np.ndarray[Any, np.dtype[np.int64]]

_ROWS = 1 << 17  # rows whose noise is made together: many steps of a group at once are cheaper
_GROUPS = 256  # noises at hand
_OPEN = 4
_opened: OrderedDict[str, Noises] = OrderedDict()


class Noises:
    """The noise of every group, made when it is asked for: one mechanism, one key for each group."""

    def __init__(self, inner: PrivateCumsum) -> None:
        self.inner = inner
        self._kept: OrderedDict[bytes, NoiseProcess] = OrderedDict()
        self._first: dict[int | None, ChainNoise[Any]] = {}

    @classmethod
    def of(cls, release: Release) -> Noises:
        """Return those of a release; a worker opens it once, for all of its tasks."""
        known = _opened.get(release.mark)
        if known is None:
            known = _opened[release.mark] = cls(release.opened())
            while len(_opened) > _OPEN:
                _opened.popitem(last=False)
        return known

    def at(self, group: tuple[Any, ...], steps: Places) -> Integers:
        """Return the noise of a group at steps (0-based), in units of the output lattice.

        Raises:
            ParameterError: the group was not declared.
            HorizonError: steps past its horizon.
        """
        encoding = encode_group(group)
        noise = self._kept.get(encoding)
        if noise is None:
            noise = self._kept[encoding] = self._made(encoding, group)
            while len(self._kept) > _GROUPS:
                self._kept.popitem(last=False)
        return noise.at(steps)

    def _made(self, encoding: bytes, group: tuple[Any, ...]) -> NoiseProcess:
        horizon = self.inner._mechanism.horizon_of(encoding, group)
        first = self._first.get(horizon)
        if first is not None:
            key, stream = self.inner._group_key(encoding)
            return first.under(key=key, stream_id=stream, purpose="counter/0")
        counter = self.inner._counter(encoding, horizon)
        noise: NoiseProcess = counter._noises[0]
        if isinstance(noise, ChainNoise):
            self._first[horizon] = noise
        return noise


class Inputs:
    """Replaces the column of values by inputs in lattice steps: for ``mapInArrow``.

    Args:
        release: whose inputs they are.
        shown: columns to pass on.
        name: of the column of inputs.
    """

    def __init__(self, release: Release, shown: Sequence[str], name: str) -> None:
        self.release, self.shown, self.name = release, tuple(shown), name

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the batches with inputs.

        Raises:
            ParameterError: an input that is not acceptable. Its value is not in the message: executors' logs
                are read by others.
        """
        import pyarrow

        inner = Noises.of(self.release).inner
        for batch in batches:
            inputs = checked_inputs(batch.column(self.release.value), inner)
            columns = [batch.column(name) for name in self.shown]
            yield pyarrow.RecordBatch.from_arrays(
                [*columns, pyarrow.array(inputs, pyarrow.int64())], names=[*self.shown, self.name]
            )


def checked_inputs(column: Any, inner: PrivateCumsum) -> Integers:
    """Return a column of values as inputs in lattice steps.

    Args:
        column: of Arrow, in one piece or in several.
        inner: whose inputs they are.

    Raises:
        ParameterError: an input that is not acceptable. Its value is not in the message: executors' logs are
            read by others.
    """
    import pyarrow

    setup, name = inner._mechanism.any_setup, inner._columns.value
    missing = np.zeros(len(column), dtype=bool)
    if column.null_count:
        if inner._nulls == "refuse":
            raise ParameterError(f"column {name!r} has no value in some row (nulls='zero' counts it as 0)")
        setup.check_zeros()
        missing = column.is_null().to_numpy(zero_copy_only=False)
        column = column.drop_null()
    kind = column.type
    plain = pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind)
    try:
        present = setup.many(column.to_numpy(zero_copy_only=False) if plain else column.to_pylist())[:, 0]
    except ParameterError:
        low, high = setup.rule.low, setup.rule.high
        raise ParameterError(
            f"column {name!r} has an input that is not acceptable (it is not shown here): inputs are "
            f"multiples of 2^-{setup.rule.places} between {low} and {high} of these"
        ) from None
    inputs = np.zeros(len(missing), dtype=np.int64)
    inputs[~missing] = present
    return inputs


class Released:
    """Adds the noise to exact sums: for ``mapInArrow``.

    Args:
        release: whose noise it is.
        by: the grouping columns.
        shown: columns to pass on.
        step, exact: columns with the step of a row in its group (from 1), and the exact sum up to it.
    """

    def __init__(self, release: Release, by: Sequence[str], shown: Sequence[str], step: str, exact: str):
        self.release, self.by, self.shown, self.step, self.exact = release, by, shown, step, exact

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the batches with the released column instead of steps and sums.

        Raises:
            ParameterError, HorizonError: an undeclared group, a step past the horizon.
        """
        noises = Noises.of(self.release)
        name = noises.inner._columns.name
        for table in gathered(batches):
            yield from (
                table.select(list(self.shown)).append_column(name, self.released(table, noises)).to_batches()
            )

    def released(self, table: Any, noises: Noises) -> Any:
        """Return the released values of the rows of a table, in their order, as an array of Arrow."""
        steps = table.column(self.step).to_numpy() - 1
        groups, codes = codes_of([table.column(name) for name in self.by], len(steps))
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(groups) + 1))
        noise: Integers = np.zeros(len(steps), dtype=np.int64)
        for index, group in enumerate(groups):
            where = order[ends[index] : ends[index + 1]]
            some = noises.at(group, steps[where])
            if some.dtype == object:
                noise = noise.astype(object)
            noise[where] = some
        return shown_values(noises.inner, table.column(self.exact).to_numpy(), noise)


def shown_values(inner: PrivateCumsum, sums: Integers, noise: Integers) -> Any:
    """Return released values as an array of Arrow.

    Args:
        inner: whose values they are.
        sums: exact, in units of the input lattice.
        noise: in units of the output lattice.

    Raises:
        ParameterError: values that the engine's columns do not hold.
    """
    import pyarrow

    setup = inner._mechanism.any_setup
    nums = add(shift_left(sums, setup.output_places - setup.rule.places), noise)
    nums = post_process(nums, setup.postprocess, np.zeros(1, dtype=np.int64))
    shown = as_array(nums, setup.output_places)
    if shown.dtype == object:
        raise ParameterError("released values do not fit into 64 bits, which is what Spark's columns hold")
    return pyarrow.array(shown, pyarrow.int64() if setup.output_places == 0 else pyarrow.float64())


def gathered(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield tables of many rows, made of whole batches."""
    import pyarrow

    held: list[Any] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= _ROWS:
            yield pyarrow.Table.from_batches(held)
            held, rows = [], 0
    if rows:
        yield pyarrow.Table.from_batches(held)


def codes_of(columns: Sequence[Any], rows: int) -> tuple[list[tuple[Any, ...]], Places]:
    """Return the groups that occur, as Python values, and for each row the index of its group."""
    if not columns:
        return ([()] if rows else []), np.zeros(rows, dtype=np.int64)
    values, parts = [], []
    for column in columns:
        coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        if hasattr(coded, "combine_chunks"):
            coded = coded.combine_chunks()
        values.append(coded.dictionary.to_pylist())
        parts.append(coded.indices.to_numpy(zero_copy_only=False).astype(np.int64))
    joined = parts[0]
    for part, known in zip(parts[1:], values[1:], strict=True):
        # Numbered anew at every column: at most rows x rows.
        joined = np.unique(joined, return_inverse=True)[1].astype(np.int64) * len(known) + part
    _, first, codes = np.unique(joined, return_index=True, return_inverse=True)
    groups = [
        tuple(known[part[row]] for known, part in zip(values, parts, strict=True)) for row in first.tolist()
    ]
    return groups, codes.astype(np.int64)
