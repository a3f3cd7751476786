"""Starts spread over the local devices: every device moves its own share and waits for no other (new)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import signature
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from trilift.lift.checks import integer

__all__ = ["START_AXIS", "over_starts", "place_starts", "start_mesh"]

START_AXIS = "starts"


def start_mesh(starts: int, devices: int | None = None) -> Mesh | None:
    """Return the local devices to use, or None for the default device alone.

    Args:
        starts: how many starts there are to share out; every device gets as many as the others.
        devices: how many devices at most; default all local ones.

    The most devices that divide ``starts`` are taken.

    Raises:
        ParameterError: devices is not an integer >= 1.

    >>> start_mesh(5, 1) is None
    True
    """
    local = jax.local_devices()
    most = len(local) if devices is None else min(integer("devices", devices, minimum=1), len(local))
    count = max(n for n in range(1, most + 1) if starts % n == 0)
    return None if count == 1 else Mesh(np.array(local[:count]), (START_AXIS,))


def _shard_map() -> Callable[..., Any]:
    home = jax if hasattr(jax, "shard_map") else import_module("jax.experimental.shard_map")
    function: Callable[..., Any] = home.shard_map
    return function


def over_starts(function: Callable[..., Any], mesh: Mesh | None) -> Callable[..., Any]:
    """Return ``function(arrays, *numbers)`` with every array's first axis shared out over the mesh.

    Nothing is exchanged between the devices. The numbers go to all of them.
    """
    if mesh is None:
        return function
    mapped = _shard_map()
    names = signature(mapped).parameters
    # the name of the check changed; it is off because a loop's counter is the same everywhere anyway
    check = {name: False for name in ("check_vma", "check_rep") if name in names}
    shared, everywhere = PartitionSpec(START_AXIS), PartitionSpec()

    def spread(arrays: Any, *numbers: Any) -> Any:
        specs = (shared, *(everywhere for _ in numbers))
        return mapped(function, mesh=mesh, in_specs=specs, out_specs=shared, **check)(arrays, *numbers)

    return spread


def place_starts(arrays: dict[str, Any], mesh: Mesh | None) -> dict[str, jax.Array]:
    """Put arrays, first axis = starts, onto the devices of the mesh; those already there stay."""
    if mesh is None:
        return {name: jax.numpy.asarray(value, dtype=np.float64) for name, value in arrays.items()}
    sharding = NamedSharding(mesh, PartitionSpec(START_AXIS))
    return {name: jax.device_put(value, sharding) for name, value in arrays.items()}
