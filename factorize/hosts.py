"""Several hosts at one search: every one moves its own starts, and after each round all go on from the best.

Built on ``jax.distributed``: the processes meet at a coordinator, and exchange their costs and the best stage
as plain bytes, so that no JAX setting can round them. Everything else a host does alone (new).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from trilift.lift.checks import fail, integer
from trilift.lift.errors import ParameterError

__all__ = ["ALONE", "Hosts", "connect"]

_MOST_HOSTS = 4096


@dataclass(frozen=True)
class Hosts:
    """The place of this process among all.

    Attributes:
        count: number of processes.
        index: number of this one, from 0.
    """

    count: int = 1
    index: int = 0

    def gather(self, values: list[float]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return everyone's values, shape (count, len(values)); every host must call it, with as many."""
        mine = np.array(values, dtype=np.float64)
        if self.count == 1:
            return mine[None, :]
        from jax.experimental import multihost_utils

        stacked = np.asarray(multihost_utils.process_allgather(mine.view(np.uint32)))
        return np.ascontiguousarray(stacked.reshape(self.count, -1)).view(np.float64)

    def broadcast(self, data: bytes, *, source: int) -> bytes:
        """Return the bytes that host ``source`` has; every host must call it."""
        if self.count == 1:
            return data
        from jax.experimental import multihost_utils

        length = int(self.gather([float(len(data))])[source, 0])
        words = np.zeros(-(-length // 4), dtype=np.uint32)
        if self.index == source:
            words = np.frombuffer(data.ljust(4 * len(words), b"\0"), dtype=np.uint32)
        shared: Any = multihost_utils.broadcast_one_to_all(words, is_source=self.index == source)
        return np.asarray(shared, dtype=np.uint32).tobytes()[:length]


ALONE = Hosts()


def connect(coordinator: str, *, count: int, index: int) -> Hosts:
    """Join the other processes; to be called before anything else uses JAX's devices.

    Args:
        coordinator: "address:port" of process 0, where all meet.
        count: number of processes.
        index: number of this one, 0, ..., count - 1.

    Raises:
        ParameterError: a bad argument, or the others cannot be reached.
    """
    if not isinstance(coordinator, str) or ":" not in coordinator:
        raise fail("coordinator", "an address with a port, such as '10.0.0.1:9911'", coordinator)
    count = integer("hosts", count, minimum=1, maximum=_MOST_HOSTS)
    index = integer("host", index, minimum=0, maximum=count - 1)
    if count == 1:
        return ALONE
    config: Any = jax.config
    with suppress(AttributeError, ValueError):  # the default of newer versions, unknown to some
        config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        jax.distributed.initialize(coordinator_address=coordinator, num_processes=count, process_id=index)
    except (RuntimeError, ValueError) as error:
        raise ParameterError(f"the hosts did not meet at {coordinator}: {error}") from None
    return Hosts(count, index)
