"""Private running sums of a column of a Spark frame, batch or streaming, one counter a group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Required, TypedDict, Unpack

from trilift.counters.accounting.budget import Budget
from trilift.counters.durable.outside import KeySource
from trilift.counters.running import RunningCounter
from trilift.counters.spark.batch import batch_plan
from trilift.counters.spark.release import Release, key_name, mark_of
from trilift.counters.spark.stream import stream_plan
from trilift.lift.checks import fail, integer
from trilift.lift.errors import ParameterError, StateError

__all__ = ["SparkCumsum", "SparkOptions", "spark_cumsum"]


class SparkOptions(TypedDict, total=False):
    """The arguments of :class:`SparkCumsum` besides the value column: see there."""

    epsilon: Required[Any]
    delta: Any
    by: str | Sequence[str] | None
    groups: Any
    order: Required[str | Sequence[str]]
    horizon: Any
    bounds: Any
    max_contributions: int
    person: str | None
    nulls: str
    clip: bool
    resolution: Any
    output_resolution: Any
    postprocess: str | None
    objective: str | None
    name: str | None
    keep: str | Sequence[str]
    key: KeySource
    version: str
    budget: Budget | None
    simulation_seed: int | None
    rows_per_task: int


class SparkCumsum:
    """The running sum of a column within every group of a Spark frame, under differential privacy.

    Neighbours: two frames with the same rows, in the same groups and the same order, that differ in the value
    column in at most ``max_contributions`` rows of one person, whichever groups these are in, each by at most
    high - low. **Which rows there are, their groups and their order is public**: the released frame shows it.
    Guarantee: the released column is (epsilon, 0)-differentially private; with ``delta`` it is
    (epsilon, delta)-differentially private, and mu-GDP.

    Composition: as of :class:`trilift.counters.frames.PrivateCumsum`, whose released values these are, bit
    for bit, under the same key and version: groups are disjoint, each has a counter under a key of its own
    (parallel composition, McSherry 2009). The engine computes exact sums; the noise of a step is a function
    of key, group and step. So whatever the engine runs again (a failed task, a speculative copy, a
    micro-batch after a crash) has the same values: it releases nothing new.

    Keys: ``key`` names where the key is, and each executor reads it there; plans, logs and lineage hold the
    name and a mark that tells keys from others. An executor with another key refuses to work. **Nobody
    remembers what was counted**: changed data need a new ``version`` (and budget), and the source must be
    one that gives the same rows when it is read again. A stream goes on in its checkpoint, which holds
    exact sums: it is as secret as the data.

    Args:
        value: column of numbers to sum.
        epsilon, delta, by, groups, horizon, bounds, max_contributions: as for
            :class:`trilift.counters.frames.PrivateCumsum`.
        nulls, clip, resolution, output_resolution, objective, name, budget, simulation_seed: likewise.
        order: ordering column, or several, without ties within a group.
        person: column that says whose row it is: more than ``max_contributions`` of one are refused (not for
            streams).
        keep: columns to keep besides ``by`` and ``order``, or "all" (not for streams).
        postprocess: None or "nonnegative". (A running maximum of released values costs no privacy.)
        key: "env:NAME", "file:PATH", "call:MODULE:FUNCTION", or a function that executors can import.
        version: name of the version of the data.
        rows_per_task: groups with more rows are summed by several tasks (batch); a million when left out.

    Raises:
        ParameterError: an argument that is not acceptable.
    """

    def __init__(self, value: str, **options: Unpack[SparkOptions]) -> None:
        given: dict[str, Any] = dict(options)
        unknown = set(given) - set(SparkOptions.__annotations__)
        if unknown:
            raise ParameterError(f"SparkCumsum has no argument {min(unknown)!r}")
        for name, why in (("epsilon", "how much the release may reveal"), ("order", "a frame has no order")):
            if given.get(name) is None:
                raise ParameterError(f"{name} must be given: {why}")
        if given.get("postprocess") not in (None, "nonnegative"):
            raise fail("postprocess", "None or 'nonnegative'", given["postprocess"])
        self._rows_per_task = integer("rows_per_task", given.pop("rows_per_task", 1_000_000), minimum=2)
        simulated = given.get("simulation_seed") is not None
        source, budget = given.pop("key", None), given.pop("budget", None)
        if source is None and not simulated:
            raise ParameterError("key must be given: where all executors find it")
        groups = given.get("groups")
        if groups is not None and not isinstance(groups, str):
            given["groups"] = list(groups)
        named = None if source is None else key_name(source)
        release = Release(value=value, options=given, source=named)
        self._inner = release.opened(budget=budget)
        self._release = Release(value=value, options=given, source=named, mark=mark_of(self._inner))

    def __repr__(self) -> str:
        return repr(self._inner).replace("PrivateCumsum", "SparkCumsum", 1)

    def __reduce__(self) -> Any:
        raise StateError("a private sum holds a key, and is not copied or pickled")

    def privacy_statement(self) -> str:
        """Return what is guaranteed, to whom, and what it rests on, as plain text."""
        lines = [
            self._inner.privacy_statement(),
            "On Spark: noise is a function of key, group and step, so that whatever is run again has the same"
            " values. Nobody remembers what was counted: changed data need a new version. Checkpoints and"
            " shuffles hold exact sums, and are as secret as the data.",
        ]
        return "\n".join(lines)

    def counter(self, *group: Any) -> RunningCounter:
        """Return a new counter with the key of a group, on the driver; as secret as the key.

        Raises:
            ParameterError: no such group.
        """
        return self._inner.counter(*group)

    def apply(self, frame: Any) -> Any:
        """Return the frame with the released column, for a batch or, where ``frame`` is streaming, a stream.

        The engine computes it when an action or a streaming query asks for it; of a batch, the rows of groups
        are counted at once. Errors in the data come out of the action, as the engine's exceptions.

        Raises:
            ParameterError: no frame of Spark, or a column that is not acceptable.
            HorizonError: over-spent budgets raise what :class:`trilift.counters.accounting.Budget` says.
        """
        if not hasattr(frame, "mapInArrow") or not hasattr(frame, "isStreaming"):
            raise ParameterError(f"df must be a DataFrame of Spark, got a {type(frame).__name__}")
        columns, setup = self._inner._columns, self._inner._mechanism.any_setup
        if frame.isStreaming:
            result = stream_plan(frame, columns, setup, self._release)
        else:
            result = batch_plan(frame, columns, setup, self._release, rows_per_task=self._rows_per_task)
        self._inner._pay()
        return result


def spark_cumsum(df: Any, value: str, **options: Unpack[SparkOptions]) -> Any:
    """Return a frame of Spark with the private running sum of a column, within every group, in the given
    order.

    The result has the columns ``by``, ``order`` and ``keep`` of the frame and the new one; a streaming frame
    gives a streaming frame (output mode "append").

    Args:
        df: a DataFrame of Spark.
        value: column of numbers to sum.
        options: epsilon, key and all other arguments of :class:`SparkCumsum`, whose neighbours, guarantee,
            composition and theorem these are.

    Raises:
        ParameterError: an argument or a column that is not acceptable.
    """
    return SparkCumsum(value, **options).apply(df)
