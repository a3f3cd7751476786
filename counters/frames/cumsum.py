"""Private running sums of a column, one counter a group, for dataframes of pandas and polars."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Required, TypedDict, Unpack

import numpy as np
from trilift.counters.accounting.budget import Budget
from trilift.counters.durable.outside import KeySource, read_key
from trilift.counters.frames.engines import engine_of, lazy_frame
from trilift.counters.frames.groups import encode_group, shown_group
from trilift.counters.frames.registry import Registry
from trilift.counters.frames.rows import read_rows
from trilift.counters.frames.spec import Columns, Mechanism, data_digest, policies
from trilift.counters.frames.words import statement
from trilift.counters.released import as_array
from trilift.counters.running import RunningCounter
from trilift.counters.state import stream_record
from trilift.lift.checks import fail
from trilift.lift.errors import HorizonError, ParameterError, StateError
from trilift.stream.keys import DigestBuilder, derive_key, new_key, simulation_key

__all__ = ["Options", "PrivateCumsum", "private_cumsum"]


class Options(TypedDict, total=False):
    """The arguments of :class:`PrivateCumsum` besides the value column: see there."""

    epsilon: Required[Any]
    delta: Any
    by: str | Sequence[str] | None
    groups: Any
    order: str | Sequence[str] | None
    ties: str
    horizon: Any
    bounds: Any
    max_contributions: int
    person: str | None
    excess: str
    nulls: str
    clip: bool
    resolution: Any
    output_resolution: Any
    postprocess: str | None
    objective: str | None
    name: str | None
    keep: str | Sequence[str]
    key: KeySource | None
    version: str | None
    state: str | os.PathLike[str] | None
    budget: Budget | None
    simulation_seed: int | None


class PrivateCumsum:
    """The running sum of a column within every group, under differential privacy (new in this form).

    Neighbours: two frames with the same rows, in the same groups and the same order, that differ in the value
    column in at most ``max_contributions`` rows of one person, whichever groups these are in, each by at most
    high - low. **Which rows there are, their groups and their order is public**: the released frame shows it.
    A row that is there or not, moves to another group or changes its place is not covered
    (docs/frames.md says what is for that). Guarantee: the released column is (epsilon, 0)-differentially
    private; with ``delta`` it is (epsilon, delta)-differentially private, and mu-GDP.

    Composition: groups are disjoint, and each has a counter made for all ``max_contributions`` rows, under a
    key of its own. Somebody with k_i rows in group i, k_1 + k_2 + ... at most max_contributions, costs
    epsilon k_i / max_contributions there, as costs are in proportion to the change, so epsilon in all; with
    Gaussian noise squares of mu add up to even less. Theorem: parallel composition (McSherry 2009) of
    :class:`trilift.counters.Counter` or :class:`trilift.counters.GaussianCounter`.

    Keys: that of a group is derived by HKDF from the master key, bound to the version of the data, the
    columns, how they are read, and the group's value with its type. The same key and version give the same
    noise again: so the same data give the same values at no new cost, more rows behind them continue the
    streams, and changed data are refused, since the same noise would show the change. What was counted is
    remembered by this object, and with ``state`` in a file; with ``key`` alone nobody remembers what an
    earlier process counted, and naming versions is up to you.

    Args:
        value: column of numbers to sum.
        epsilon: privacy budget > 0 of everything released, exact.
        delta: None for Laplace noise, or in (0, 1) for Gaussian noise.
        by: grouping column, or several; None: one group.
        groups: the groups that there can be: values (tuples of them for several columns), public and
            declared beforehand; rows of others are refused. "observed": that it is public which occur.
        order: ordering column, or several; None: rows as they stand (not for LazyFrames).
        ties: "refuse", or "rows": rows of one group and place are taken as they stand (not for LazyFrames).
        horizon: largest number of rows of a group, or a mapping with one for each group; None: no end.
        bounds, clip, resolution, output_resolution, postprocess, objective: as for
            :class:`trilift.counters.Counter`.
        max_contributions: rows of one person, all groups together.
        person: column that says whose row it is; with it ``max_contributions`` is enforced.
        excess: rows of a person beyond that: "refuse", or "zero": the later ones count as 0.
        nulls: rows without a value: "refuse", or "zero": they count as 0.
        name: of the new column; "<value>_private" when left out.
        keep: columns to keep besides ``by`` and ``order``, or "all" but the value column, which is private
            (and is kept only where it is named).
        key: master key: 32 bytes, a function, "env:NAME" or "file:PATH". None: that of ``state``, or a new
            one.
        version: name of the version of the data; must be given with ``key``.
        state: a file for key and memory, for the owner only; made when it does not exist.
        budget: a :class:`trilift.counters.accounting.Budget` to charge before the first release.
        simulation_seed: noise that anybody can reproduce. For tests and simulations only: no privacy.

    Raises:
        ParameterError: an argument that is not acceptable.
        ArtifactFormatError, StateError, OSError: the state is damaged, in use, or cannot be written.
    """

    def __init__(
        self,
        value: str,
        *,
        epsilon: Any,
        delta: Any = None,
        by: str | Sequence[str] | None = None,
        groups: Any = None,
        order: str | Sequence[str] | None = None,
        ties: str = "refuse",
        horizon: Any = None,
        bounds: Any = (0, 1),
        max_contributions: int = 1,
        person: str | None = None,
        excess: str = "refuse",
        nulls: str = "refuse",
        clip: bool = False,
        resolution: Any = 1,
        output_resolution: Any = None,
        postprocess: str | None = None,
        objective: str | None = None,
        name: str | None = None,
        keep: str | Sequence[str] = (),
        key: KeySource | None = None,
        version: str | None = None,
        state: str | os.PathLike[str] | None = None,
        budget: Budget | None = None,
        simulation_seed: int | None = None,
    ) -> None:
        self._columns = Columns.make(value=value, by=by, order=order, person=person, keep=keep, name=name)
        self._excess, self._nulls, self._ties = policies(excess, nulls, ties)
        if excess == "zero" and person is None:
            raise ParameterError("excess='zero' needs person=, the column that says whose row it is")
        self._mechanism = Mechanism.make(
            delta=delta,
            by=self._columns.by,
            groups=groups,
            horizon=horizon,
            arguments={
                "epsilon": epsilon,
                "bounds": bounds,
                "max_contributions": max_contributions,
                "clip": clip,
                "resolution": resolution,
                "output_resolution": output_resolution,
                "postprocess": postprocess,
                "objective": objective,
            },
        )
        if version is not None and (not isinstance(version, str) or not version.isprintable()):
            raise fail("version", "a printable text", version)
        if key is not None and version is None:
            raise ParameterError("version must be given with key: a key serves one version of the data")
        if budget is not None and not isinstance(budget, Budget):
            raise fail("budget", "a Budget of trilift.counters.accounting", budget)
        self._simulated = simulation_seed is not None
        if self._simulated and (key is not None or state is not None or budget is not None):
            raise ParameterError("a simulation has no key, no state and no budget")
        self._version, self._budget = version or "", budget
        master = None if key is None else read_key(key)
        master = simulation_key(simulation_seed) if simulation_seed is not None else master
        self._data = data_digest(
            self._columns,
            self._mechanism.any_setup,
            version=self._version,
            excess=self._excess,
            nulls=self._nulls,
            ties=self._ties,
        )
        self._registry = Registry(key=master, path=state)

    def __repr__(self) -> str:
        mark = ", SIMULATION" if self._simulated else ""
        epsilon, by = self._mechanism.arguments["epsilon"], ", ".join(self._columns.by)
        return f"PrivateCumsum({self._columns.value!r}, epsilon={epsilon}, by=({by}){mark})"

    def __reduce__(self) -> Any:
        raise StateError("the keys of a private sum are not copied or pickled: use state=")

    def privacy_statement(self) -> str:
        """Return what is guaranteed, to whom, and what it rests on, as plain text."""
        return statement(
            self._columns,
            self._mechanism,
            version=self._version,
            nulls=self._nulls,
            excess=self._excess,
            simulated=self._simulated,
        )

    def counter(self, *group: Any) -> RunningCounter:
        """Return a new counter with the key of a group: fed with its rows in order, it gives the same values.

        It is as secret as the key, and must be given the same data and no other. The memory of what was
        counted is not asked: :meth:`apply` is what notices other data, and other noise.

        Args:
            group: the group's value in each grouping column; nothing where there is one group.

        Raises:
            ParameterError: no such group.
        """
        if len(group) != len(self._columns.by):
            raise fail("group", f"values of the {len(self._columns.by)} grouping columns", group)
        encoding = encode_group(group)
        return self._counter(encoding, self._mechanism.horizon_of(encoding, group))

    def apply(self, df: Any) -> Any:
        """Return the frame with the released column; see :func:`private_cumsum`.

        Raises:
            ParameterError: a frame, a column or a value that is not acceptable.
            HorizonError: a group with more rows than its horizon.
            ReplayError: other data were counted under this key and version.
            ArtifactFormatError, StateError, OSError: the state is damaged, in use, or cannot be written.

        Whatever is raised, nothing was released, and nothing is remembered.
        """
        if lazy_frame(df):
            return self._lazy(df)
        engine = engine_of(df)
        shown = self._columns.shown(engine.names(df))
        rows = read_rows(
            df,
            engine,
            self._columns,
            self._mechanism.any_setup,
            excess=self._excess,
            nulls=self._nulls,
            ties=self._ties,
        )
        counters: dict[bytes, RunningCounter] = {}
        for encoding, values, where, _ in rows.each():
            horizon = self._mechanism.horizon_of(encoding, values)
            if horizon is not None and len(where) > horizon:
                raise HorizonError(
                    f"group {shown_group(values)} has {len(where)} rows, its horizon is {horizon}"
                )
            counters[encoding] = self._counter(encoding, horizon)
        inputs = {encoding: some for encoding, _, _, some in rows.each()}
        names = {encoding: shown_group(values) for encoding, values, _, _ in rows.each()}
        using = self._registry.using(
            self._data,
            inputs,
            release=self._release(self._mechanism.asked_record()),
            version=self._version,
            names=names,
        )
        with using as check:
            parts = [
                (where, counters[encoding]._advance(some[:, None])[:, 0])
                for encoding, _, where, some in rows.each()
            ]
            check({encoding: counter._noise_digests() for encoding, counter in counters.items()})
            result = engine.with_column(df, shown, self._columns.name, self._joined(len(rows.inputs), parts))
            self._pay()
        return result

    def _joined(self, count: int, parts: Sequence[tuple[Any, Any]]) -> Any:
        places = self._mechanism.any_setup.output_places
        shown = [(where, as_array(nums, places)) for where, nums in parts]
        wide = any(values.dtype == object for _, values in shown)
        dtype = object if wide else np.int64 if places == 0 else np.float64
        column = np.zeros(count, dtype=dtype)
        for where, values in shown:
            column[where] = values
        return column

    def _lazy(self, frame: Any) -> Any:
        import polars

        if not self._columns.order or self._ties != "refuse":
            raise ParameterError("a LazyFrame has no order of rows: order= must name columns without ties")
        schema = frame.collect_schema()
        shown = self._columns.shown(list(schema))
        kind = polars.Int64 if self._mechanism.any_setup.output_places == 0 else polars.Float64
        return frame.select(list(dict.fromkeys((*shown, *self._columns.needed)))).map_batches(
            self.apply,
            predicate_pushdown=False,  # filters of what comes out must not change what goes in
            projection_pushdown=False,
            slice_pushdown=False,
            schema={name: schema[name] for name in shown} | {self._columns.name: kind},
        )

    def _representative(self) -> RunningCounter:
        """Return a counter that stands for all groups in the budget, with the identity of this release."""
        release = self._release(self._mechanism.own_record())
        return self._begun(self._mechanism.any_setup.horizon, new_key(), release[:16])

    def _release(self, own: dict[str, Any]) -> bytes:
        """Return a digest of key, data set and parameters of the mechanism.

        Args:
            own: those besides the inputs' parameters. With the chosen chain it is what is paid for once;
                with what was asked for alone, what must always come with the same noise.
        """
        mechanism, setup = self._mechanism, self._mechanism.any_setup
        digest = DigestBuilder("trilift/frames/release/1").add("key", self._registry.identity)
        digest.add("data", self._data).add("kind", mechanism.kind.__name__)
        horizons = {b"": mechanism.horizon} if mechanism.groups is None else mechanism.groups
        for encoding, horizon in sorted(horizons.items()):
            digest.add("group", encoding).add("horizon", horizon or 0)
        record = stream_record(setup) | own
        digest.add("setup", json.dumps({**record, "horizon": None}, sort_keys=True))
        return digest.digest()

    def _counter(self, encoding: bytes, horizon: int | None) -> RunningCounter:
        key, stream = self._group_key(encoding)
        return self._begun(horizon, key, stream)

    def _group_key(self, encoding: bytes) -> tuple[bytes, bytes]:
        """Return key and stream identity of a group."""
        digest = DigestBuilder("trilift/frames/group/1").add("data", self._data).add("group", encoding)
        bound = digest.digest()
        stream = bound[:16]
        key = derive_key(self._registry.key, stream_id=stream, purpose="frames/group", digest=bound)
        return key, stream

    def _begun(self, horizon: int | None, key: bytes, stream: bytes) -> RunningCounter:
        kind = self._mechanism.kind
        counter = kind.__new__(kind)
        counter._start(self._mechanism.setup(horizon), key, stream, self._simulated, {})
        return counter

    def _pay(self) -> None:
        """Charge everything that is released under this key, version and mechanism, once."""
        if self._budget is None:
            return
        counter = self._representative()
        if not self._budget.charged(counter):
            self._budget.charge(counter, by=f"private_cumsum of {self._columns.value}")


def private_cumsum(df: Any, value: str, **options: Unpack[Options]) -> Any:
    """Return a frame with the private running sum of a column, within every group and in the given order.

    The result has the columns ``by``, ``order`` and ``keep`` of the frame, its rows in their order, and the
    new column: in each row the released sum of the values of its group up to that row. A LazyFrame gives a
    LazyFrame, whose rows are read when it is collected, by any engine; collecting it again gives the same
    values, and is refused when its source has changed meanwhile.

    Without ``key`` and ``state`` every call draws a key of its own: calling twice spends epsilon twice.

    Args:
        df: a DataFrame of pandas or polars, or a LazyFrame of polars.
        value: column of numbers to sum.
        options: epsilon and all other arguments of :class:`PrivateCumsum`, whose neighbours, guarantee,
            composition and theorem these are.

    Raises:
        ParameterError: an argument, a column or a value that is not acceptable.
        HorizonError: a group with more rows than its horizon.
        ReplayError: other data were counted under this key and version.
        ArtifactFormatError, StateError, OSError: the state is damaged, in use, or cannot be written.

    >>> import polars
    >>> df = polars.DataFrame({"day": [1, 1, 2], "carrier": ["AA", "UA", "AA"], "late": [0, 1, 1]})
    >>> out = private_cumsum(df, "late", by="carrier", groups=["AA", "UA"], order="day", epsilon=1)
    >>> out.columns
    ['day', 'carrier', 'late_private']
    """
    unknown = set(options) - set(Options.__annotations__)
    if unknown:
        raise ParameterError(f"private_cumsum has no argument {min(unknown)!r}")
    if "epsilon" not in options:
        raise ParameterError("epsilon must be given: how much the release may reveal")
    return PrivateCumsum(value, **options).apply(df)
