"""The privacy statement of a private running sum of a frame, in words."""

from __future__ import annotations

from trilift.counters.frames.spec import Columns, Mechanism
from trilift.counters.statement import CONDITIONS, SIMULATION, number, privacy_statement
from trilift.counters.statement import neighbours as of_one

__all__ = ["statement"]


def statement(
    columns: Columns, mechanism: Mechanism, *, version: str, nulls: str, excess: str, simulated: bool
) -> str:
    """Return neighbours, guarantee, composition, conditions, and what a counter of one group says."""
    setup = mechanism.any_setup
    rows = setup.max_contributions
    delta = mechanism.arguments.get("delta")
    pair = f"epsilon = {number(setup.epsilon)}" if hasattr(setup, "epsilon") else "epsilon"
    pair += ", delta = 0" if delta is None else f", delta = {number(getattr(setup, 'delta', delta))}"
    groups = "one group" if not columns.by else f"groups by {', '.join(columns.by)}"
    if columns.by:
        known = mechanism.groups
        groups += ", those that occur" if known is None else f", {len(known)} declared"
    order = f"ordered by {', '.join(columns.order)}" if columns.order else "in the order of the frame"
    what = "one row" if rows == 1 else f"at most {rows} rows of one person, all groups together"
    lines = [SIMULATION] if simulated else []
    lines += [
        f"Released: running sums of {columns.value!r}, {groups}, {order}"
        + (f"; version {version!r} of the data." if version else "."),
        f"Neighbours: two frames with the same rows, groups and order that differ in {columns.value!r} in"
        f" {what}. Which rows there are, their groups and their order is public; a row that is there or not,"
        " or that moves, is not covered.",
        f"Guarantee: the released column is (epsilon, delta)-differentially private with {pair}.",
        "Composition: groups are disjoint; each has a counter under a key of its own, made for all rows of a"
        " person, whose cost is in proportion to the rows that are in the group (parallel composition).",
        "Keys: bound to the version, the columns, how they are read, and the group; the same data again give"
        " the same values, changed data need a new version and new budget.",
    ]
    if nulls == "zero":
        lines.append("Rows without a value count as 0.")
    if columns.person is not None:
        done = "refused" if excess == "refuse" else "counted as 0"
        lines.append(f"Rows of a person ({columns.person!r}) beyond {rows} are {done}.")
    lines += [CONDITIONS, f"Each group is counted over {of_one(setup)}:"]
    inner = [line for line in privacy_statement(setup, simulated=False).splitlines() if line != CONDITIONS]
    return "\n".join([*lines, *(f"  {line}" for line in inner)])
