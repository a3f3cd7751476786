"""Columns of a Spark frame: which types can group and order rows, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trilift.counters.frames.spec import Columns
from trilift.lift.errors import ParameterError

__all__ = ["INTERNAL", "check_types", "col", "guard", "place"]

INTERNAL = "trilift_internal_"

_WHOLE = {"ByteType", "ShortType", "IntegerType", "LongType"}
_GROUPS = _WHOLE | {"StringType", "BooleanType", "BinaryType", "DateType"}
_ORDERS = _GROUPS | {"FloatType", "DoubleType", "DecimalType", "TimestampType", "TimestampNTZType"}
_VALUES = _WHOLE | {"FloatType", "DoubleType", "DecimalType"}


def check_types(frame: Any, columns: Columns, orders: set[str] | None = None) -> dict[str, Any]:
    """Return the types of the columns by name.

    Args:
        frame: of Spark.
        columns: that are used.
        orders: names of types that can order rows; None: all that have one order everywhere.

    Raises:
        ParameterError: a type that cannot group, order or be summed.
    """
    types = {field.name: field.dataType for field in frame.schema.fields}
    if any(name.startswith(INTERNAL) for name in types):
        raise ParameterError(f"the frame has a column that begins with {INTERNAL!r}: rename it")
    wanted = ((columns.by, _GROUPS, "group"), (columns.order, orders or _ORDERS, "order"))
    for names, allowed, what in (*wanted, ((columns.value,), _VALUES, "be summed")):
        for name in names:
            kind = types[name]
            plain = getattr(kind, "collation", "UTF8_BINARY") == "UTF8_BINARY"
            if type(kind).__name__ not in allowed or not plain:
                raise ParameterError(
                    f"column {name!r} of type {kind.simpleString()} cannot {what}: cast it to one of "
                    + ", ".join(sorted(kind.removesuffix("Type").lower() for kind in allowed))
                )
    return types


def col(name: str) -> Any:
    """Return a column by its name, whatever is in it."""
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")


def place(order: Sequence[str]) -> Any:
    """Return the place of a row: a structure of its ordering columns, which compares as they do in turn."""
    from pyspark.sql import functions as F

    return F.struct(*[col(name).alias(f"o{index}") for index, name in enumerate(order)])


def guard(*, bad: Any, message: str, otherwise: Any) -> Any:
    """Return a column of 64-bit integers that fails with a message where ``bad`` is true."""
    from pyspark.sql import functions as F

    return F.when(bad, F.raise_error(F.lit(message)).cast("bigint")).otherwise(otherwise)
