"""Running counters in special situations: asked again for a step, and noise that comes from a bank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from trilift.experiments.audit.plans import shared_plans
from trilift.experiments.audit.running import RunningSubject
from trilift.experiments.audit.subject import Pair, Stream
from trilift.stream.bank import NoiseBank
from trilift.stream.keys import simulation_key

__all__ = ["BankSubject", "ReplayedSubject"]

Array = np.ndarray[Any, np.dtype[Any]]

_AGAIN = 3


class ReplayedSubject(RunningSubject):
    """A counter that is asked for its last step three more times: whatever it says is released."""

    def _asked(self, counter: Any, inputs: Array) -> Array:
        released = [np.asarray(counter.extend(inputs))]
        for _ in range(_AGAIN):
            again = counter.update(inputs[-1], step=self._steps)
            released.append(np.asarray(again).reshape(1, -1))
        return np.concatenate(released)

    def statistics(self, pair: Pair, values: Array) -> Mapping[str, Array]:
        """The sum of the likelihood ratios of all answers: with fresh noise, the ratio of all of them."""
        first, second = self._numbers(pair.first)[:, 0], self._numbers(pair.second)[:, 0]
        answer, total = values[:, : self._steps].astype(np.float64), np.zeros(len(values))
        for k in range(_AGAIN + 1):
            answer[:, -1] = values[:, self._steps - 1 + k]
            total += self._ratios.statistics(first, second, answer)["likelihood ratio"]
        return {"likelihood ratio of all answers": total}


class BankSubject(RunningSubject):
    """The counters of a NoiseBank over the chain and the ledger of a counter, one input each."""

    def release(self, streams: Sequence[Stream], *, seed: int) -> Sequence[Array]:
        """Add the noise of one bank to the exact sums of every stream."""
        with shared_plans():
            bank = NoiseBank(
                self._setup.chain,
                self._setup.ledger,
                width=self.batch,
                horizon=self._steps,
                key=simulation_key(seed),
                stream_id=bytes(16),
                purpose="audit/bank",
                places=self._setup.output_places,
            )
        noise = np.ldexp(bank.range(0, self._steps).astype(np.float64), -bank.places)
        return [(noise + np.cumsum(stream)[:, None]).T for stream in streams]
