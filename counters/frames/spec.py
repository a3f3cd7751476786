"""What a private running sum of a frame is made of, checked: columns, groups, inputs, and the mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trilift.counters.counter import Counter
from trilift.counters.frames.groups import encode_group, shown_group
from trilift.counters.gaussian_counter import GaussianCounter
from trilift.counters.gaussian_setup import make_gaussian
from trilift.counters.running import RunningCounter
from trilift.counters.setup import make_setup
from trilift.counters.streamed import StreamSetup
from trilift.counters.unbounded import make_unbounded
from trilift.lift.checks import choice, fail, integer
from trilift.lift.errors import ParameterError
from trilift.stream.keys import DigestBuilder

__all__ = ["OBSERVED", "Columns", "Mechanism", "data_digest", "names_of"]

OBSERVED = "observed"
POLICIES = ("refuse", "zero")
TIES = ("refuse", "rows")


def names_of(argument: str, value: Any) -> tuple[str, ...]:
    """Return names of columns: of one that is given as a text, of several, or none of None.

    Raises:
        ParameterError: no texts, or one twice.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    names = tuple(value) if isinstance(value, Sequence) else (value,)
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise fail(argument, "the name of a column, or a list of different names", value)
    return names


_CHOSEN = ("chain", "mu")  # by the program: the factorisation, and the calibration


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which columns are used for what.

    Attributes:
        value: what is summed.
        by: grouping columns.
        order: ordering columns.
        person: whose row it is, or None.
        keep: columns of the result besides ``by``, ``order`` and the new one; None: all but ``value``.
        name: of the new column.
    """

    value: str
    by: tuple[str, ...]
    order: tuple[str, ...]
    person: str | None
    keep: tuple[str, ...] | None
    name: str

    @classmethod
    def make(cls, *, value: Any, by: Any, order: Any, person: Any, keep: Any, name: Any) -> Columns:
        """Check the names.

        Raises:
            ParameterError: names that are none, or that clash.
        """
        for argument, text in (("value", value), ("person", person), ("name", name)):
            if not isinstance(text, str) and not (text is None and argument != "value"):
                raise fail(argument, "the name of a column", text)
        columns = cls(
            value=value,
            by=names_of("by", by),
            order=names_of("order", order),
            person=person,
            keep=None if isinstance(keep, str) and keep == "all" else names_of("keep", keep or None),
            name=f"{value}_private" if name is None else name,
        )
        if value in (*columns.by, *columns.order, person):
            raise ParameterError(f"column {value!r} is summed: it cannot be public, or a person, as well")
        return columns

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns that must be there."""
        person = () if self.person is None else (self.person,)
        return tuple(dict.fromkeys((self.value, *self.by, *self.order, *person, *(self.keep or ()))))

    def shown(self, names: Sequence[Any]) -> list[str]:
        """Return the columns of the result but the new one, in the order of the frame.

        Raises:
            ParameterError: a column that is missing, or there twice, or in the way of the new one.
        """
        for name in self.needed:
            if names.count(name) != 1:
                where = "is not in the frame" if name not in names else "is in the frame more than once"
                raise ParameterError(f"column {name!r} {where}")
        wanted = {*names} - {self.value} if self.keep is None else {*self.by, *self.order, *self.keep}
        shown = [name for name in names if name in wanted]
        if self.name in shown:
            raise ParameterError(f"the frame has a column {self.name!r} already: pass name=")
        return shown


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """How each group is counted.

    Attributes:
        kind: the class of the counters.
        arguments: of their setups, but for the horizon.
        groups: horizons of the declared groups by encoding; None: those that are observed.
        horizon: of groups that are observed.
    """

    kind: type[RunningCounter]
    arguments: dict[str, Any]
    groups: dict[bytes, int | None] | None
    horizon: int | None
    made: dict[int | None, StreamSetup] = field(default_factory=dict, compare=False)

    @classmethod
    def make(
        cls, *, delta: Any, by: tuple[str, ...], groups: Any, horizon: Any, arguments: dict[str, Any]
    ) -> Mechanism:
        """Check the groups and their horizons, and make the mechanism of one.

        Raises:
            ParameterError: an argument that is not acceptable.
        """
        shared = dict(arguments) | {"dimension": None, "norm_bound": None}
        if delta is not None:
            shared["delta"] = delta
        declared = None if not by else _declared(groups, by)
        if not by and groups is not None:
            raise ParameterError("groups are those of by=, which is not given")
        if not by:
            declared = {b"": ()}
        horizons = None if declared is None else _horizons(horizon, declared, by)
        if declared is None and isinstance(horizon, Mapping):
            raise ParameterError("horizon must be one for all groups, where groups are observed")
        one = horizon if horizons is None else None
        if one is not None:
            one = integer("horizon", one, minimum=1)
        kind: type[RunningCounter] = Counter if delta is None else GaussianCounter
        mechanism = cls(kind=kind, arguments=shared, groups=horizons, horizon=one)
        lengths = {one} if horizons is None else set(horizons.values())
        for length in sorted(
            lengths, key=lambda steps: (steps is None, steps)
        ):  # whatever order they came in
            mechanism.setup(length)
        return mechanism

    def setup(self, horizon: int | None) -> StreamSetup:
        """Return the setup of a counter of so many steps."""
        if horizon not in self.made:
            self.made[horizon] = self._made(horizon)
        return self.made[horizon]

    def _made(self, horizon: int | None) -> StreamSetup:
        given = dict(self.arguments)
        objective = given.pop("objective")
        given["objective"] = objective or ("mean" if horizon is None else "max")
        if self.kind is GaussianCounter:
            return make_gaussian(horizon=horizon, mechanism="chain", growth=None, chain=None, **given)
        if horizon is None:
            return make_unbounded(growth="tapered", **given)
        return make_setup(horizon=horizon, chain=None, **given)

    @property
    def any_setup(self) -> StreamSetup:
        """Inputs and guarantee are the same in all groups."""
        return next(iter(self.made.values()))

    def own_record(self) -> dict[str, Any]:
        """Return what decides the noise of a counter besides its inputs' parameters, for JSON."""
        setup: Any = self.any_setup
        record: dict[str, Any] = setup.own_record()
        return record

    def asked_record(self) -> dict[str, Any]:
        """Return the part of :meth:`own_record` that was asked for: no later version chooses it otherwise."""
        return {name: value for name, value in self.own_record().items() if name not in _CHOSEN}

    def horizon_of(self, encoding: bytes, values: tuple[Any, ...]) -> int | None:
        """Return the horizon of a group.

        Raises:
            ParameterError: it was not declared.
        """
        if self.groups is None:
            return self.horizon
        if encoding not in self.groups:
            raise ParameterError(f"group {shown_group(values)} is not among the declared groups")
        return self.groups[encoding]


def _tuple(group: Any, by: tuple[str, ...]) -> tuple[Any, ...]:
    values = (group,) if len(by) == 1 and not isinstance(group, tuple) else group
    if not isinstance(values, tuple) or len(values) != len(by):
        raise fail("groups", f"values of the {len(by)} grouping columns, as tuples", group)
    return values


def _declared(groups: Any, by: tuple[str, ...]) -> dict[bytes, tuple[Any, ...]] | None:
    if groups is None:
        raise ParameterError(
            "groups must be given: the list of groups that there can be, which must not depend on the data; "
            f"groups={OBSERVED!r} says that it is public which groups occur"
        )
    if isinstance(groups, str) and groups == OBSERVED:
        return None
    if isinstance(groups, (str, bytes, Mapping)) or not isinstance(groups, Iterable):
        raise fail("groups", f"a list of groups, or {OBSERVED!r}", groups)
    declared: dict[bytes, tuple[Any, ...]] = {}
    for group in groups:
        values = _tuple(group, by)
        encoding = encode_group(values)
        if encoding in declared:
            raise ParameterError(f"groups: {shown_group(values)} is there twice")
        declared[encoding] = values
    if not declared:
        raise ParameterError("groups must be at least one")
    return declared


def _horizons(
    horizon: Any, declared: Mapping[bytes, tuple[Any, ...]], by: tuple[str, ...]
) -> dict[bytes, int | None]:
    if not isinstance(horizon, Mapping):
        steps = None if horizon is None else integer("horizon", horizon, minimum=1)
        return dict.fromkeys(declared, steps)
    if not by:
        raise fail("horizon", "an integer, where there are no groups", horizon)
    given = {encode_group(_tuple(group, by)): steps for group, steps in horizon.items()}
    if set(given) != set(declared):
        raise ParameterError("horizon must have an entry for each of the groups, and no other")
    return {
        encoding: None if steps is None else integer("horizon", steps, minimum=1)
        for encoding, steps in given.items()
    }


def data_digest(
    columns: Columns, setup: StreamSetup, *, version: str, excess: str, nulls: str, ties: str
) -> bytes:
    """Return 32 bytes that name a data set: everything that decides what the inputs of a group are.

    Keys are derived from it, so that another column, version or reading of the data has other noise.
    """
    digest = DigestBuilder("trilift/frames/data/1").add("version", version).add("value", columns.value)
    for kind, names in (("by", columns.by), ("order", columns.order)):
        digest.add(kind, len(names))
        for name in names:
            digest.add(kind, name)
    digest.add("person", "" if columns.person is None else f"of {columns.person}")
    digest.add("excess", excess).add("nulls", nulls).add("ties", ties)
    digest.add("low", setup.rule.low).add("high", setup.rule.high).add("places", setup.rule.places)
    digest.add("clip", int(setup.rule.clip)).add("contributions", setup.max_contributions)
    return digest.digest()


def policies(excess: Any, nulls: Any, ties: Any) -> tuple[str, str, str]:
    """Return what is done with surplus rows of a person, rows without a value, and rows of one place.

    Raises:
        ParameterError: none of what there is.
    """
    return choice("excess", excess, POLICIES), choice("nulls", nulls, POLICIES), choice("ties", ties, TIES)
