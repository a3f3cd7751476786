"""The mechanism in a saved state: integer noise scales and the hashes of the factors that they belong to.

A counter is continued with the noise that it began with, or not at all. So nothing that went through floats
is computed again on loading: the scales are read as the integers that they are, and the factors are those
with the saved hashes, under whatever name they are filed by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from trilift.artifacts import catalogue, catalogue_l2, digest, find, find_l2
from trilift.lift.chain import Chain
from trilift.lift.checks import show
from trilift.lift.errors import ArtifactFormatError, ParameterError, ReplayError
from trilift.lift.stage import Stage
from trilift.stream.levels import ChainLedger

__all__ = ["SavedLevel", "restored_chain", "saved_levels"]


@dataclass(frozen=True)
class SavedLevel:
    """One level of a mechanism.

    Attributes:
        sha256: hash of its exact numbers (:func:`trilift.artifacts.digest`).
        scale: sigma, the integer scale of its noise.
        places: the noise scale in units of the count is scale / 2^places.
    """

    sha256: str
    scale: int
    places: int


@lru_cache(maxsize=64)
def _digest(stage: Stage) -> str:
    """Hash a stage once (stages are immutable and compared by identity)."""
    return digest(stage)


def saved_levels(chain: Chain, ledger: ChainLedger) -> tuple[SavedLevel, ...]:
    """Return what a state keeps of a mechanism, finest level first."""
    return tuple(
        SavedLevel(_digest(stage), entry.scale_int, entry.coarsest)
        for stage, entry in zip(chain.levels, ledger.levels, strict=True)
    )


def restored_chain(
    chain: Any, levels: Sequence[SavedLevel], *, norm: str = "l1"
) -> tuple[tuple[str, ...] | None, Chain]:
    """Return the names and the chain of a saved mechanism, which has exactly the saved numbers.

    Args:
        chain: names of artifacts, or the Chain object that the counter was made with.
        levels: the saved levels.
        norm: "l1" for artifacts of Laplace noise, "l2" of Gaussian noise.

    Raises:
        ParameterError: not that many names, or no exact chain.
        ReplayError: numbers that are gone or changed, naming level and artifact.
    """
    if isinstance(chain, Chain):
        _check_same(chain, levels)
        return None, chain
    names = list(chain) if isinstance(chain, (list, tuple)) else []
    if not names or len(names) != len(levels) or not all(isinstance(name, str) for name in names):
        raise ParameterError(f"chain must be a sequence of {len(levels)} artifact names, got {show(chain)}")
    found = [_found(index, name, levels[index].sha256, norm) for index, name in enumerate(names)]
    stages = [stage for _, stage in found]
    return tuple(name for name, _ in found), Chain(stages[-1], stages[:-1])


def _check_same(chain: Chain, levels: Sequence[SavedLevel]) -> None:
    if not chain.is_exact:
        raise ParameterError("chain must be exact: complete and certify the factors first")
    if len(chain.levels) != len(levels):
        raise ReplayError(
            f"the chain that is given has {len(chain.levels)} levels, the saved one {len(levels)}"
        )
    for index, (stage, level) in enumerate(zip(chain.levels, levels, strict=True)):
        if _digest(stage) != level.sha256:
            raise ReplayError(
                f"level {index} of the chain that is given has other numbers than the saved one"
            )


def _found(index: int, name: str, sha256: str, norm: str) -> tuple[str, Stage]:
    """Find the numbers with a hash: by name, or else anywhere in the catalogue."""
    try:
        artifact = find(name) if norm == "l1" else find_l2(name)
        if artifact.certificate.sha256 == sha256:  # loading compared it with the numbers
            return name, artifact.stage
        trouble = f"artifact {show(name)} has other numbers than when the state was saved"
    except (ParameterError, ArtifactFormatError) as error:
        trouble = f"artifact {show(name)} cannot be loaded ({error})"
    if norm == "l1":
        for entry in catalogue():
            if entry.sha256 == sha256:
                return entry.name, find(entry.name).stage
    else:
        for other in catalogue_l2():
            if other.certificate.sha256 == sha256:
                return other.name, find_l2(other.name).stage
    raise ReplayError(
        f"level {index}: {trouble}, and no artifact in the catalogue has the saved ones (SHA-256 {sha256}); "
        "put that file back to continue"
    )
