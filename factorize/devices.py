"""Starts spread over the local devices: every device moves its own and waits for no other (new).

The starts of a search are cut into blocks, each on one device, and all devices work at once. A GPU gets one
block, since it needs many starts in a batch to be busy. On processors every start is a block of its own: the
same compiled program moves each of them, so that its numbers do not depend on how many there are, nor on how
many devices share them.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from trilift.lift.checks import integer

__all__ = ["Blocks", "is_accelerated", "local_devices"]

Arrays = dict[str, jax.Array]


def local_devices(starts: int, devices: int | None = None) -> list[jax.Device]:
    """Return the local devices to use: as many as divide ``starts``, and ``devices`` at most (default all).

    Inside ``jax.default_device(...)`` it is that device alone.

    Raises:
        ParameterError: devices is not an integer >= 1.

    >>> len(local_devices(5, 1))
    1
    """
    config: Any = jax.config
    chosen = config.jax_default_device
    if isinstance(chosen, jax.Device):
        return [chosen]
    local: list[jax.Device] = jax.local_devices()
    most = len(local) if devices is None else min(integer("devices", devices, minimum=1), len(local))
    return local[: max(n for n in range(1, most + 1) if starts % n == 0)]


def is_accelerated() -> bool:
    """Whether searches run on something else than processors."""
    return bool(local_devices(1)[0].platform != "cpu")


class Blocks:
    """The arrays of all starts (first axis = starts), cut into blocks that lie on their devices.

    Attributes:
        blocks: the arrays of each block.
        each: starts in a block.
    """

    def __init__(self, arrays: dict[str, Any], devices: list[jax.Device]) -> None:
        starts = len(next(iter(arrays.values())))
        batched = devices[0].platform != "cpu"
        self.each = starts // len(devices) if batched else 1
        self.blocks: list[Arrays] = []
        for number in range(starts // self.each):
            # neighbours go to the same device
            device = devices[number * len(devices) * self.each // starts]
            part = slice(number * self.each, (number + 1) * self.each)
            block = {name: np.asarray(array[part], dtype=np.float64) for name, array in arrays.items()}
            self.blocks.append(jax.device_put(block, device))

    def start(self, number: int, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return one array of one start."""
        block, index = divmod(number, self.each)
        return np.array(self.blocks[block][name][index])

    def gathered(self) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
        """Return the arrays of all starts."""
        names = self.blocks[0]
        return {name: np.concatenate([np.asarray(block[name]) for block in self.blocks]) for name in names}
