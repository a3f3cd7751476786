"""What a search returns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trilift.factorize.settings import Settings
from trilift.lift.stage import Stage

__all__ = ["SearchResult", "SearchStatus"]


class SearchStatus(StrEnum):
    """How a search ended."""

    FINISHED = "finished"
    """All steps were done, and at least one start stayed finite."""
    INTERRUPTED = "interrupted"
    """Stopped by SIGTERM or SIGINT; a checkpoint, if asked for, holds everything."""
    OUT_OF_TIME = "out of time"
    """The time budget was spent before all steps were done; a checkpoint, if asked for, holds everything."""
    DIVERGED = "diverged"
    """Every start ran into NaN or infinity; ``stage`` is the best seen before that, if any."""


@dataclass(frozen=True)
class SearchResult:
    """The best stage seen, and how it was found.

    Attributes:
        status: how the search ended.
        stage: the best stage seen, in floats (for "direct": a plain factorisation); None only if no
            finite one was seen.
        cost: kappa of that stage, 2 (max or mean q) |B|^2 / log2(m)^3 without any smoothing; infinite
            without a stage.
        steps: Adam steps done.
        history: (step, best cost so far) after every chunk.
        dropped: number of starts lost to NaN or infinity.
        settings: everything that determined the search.
        versions: of the packages that did the arithmetic.
        seconds: time spent, over all resumed parts.
    """

    status: SearchStatus
    stage: Stage | None
    cost: float
    steps: int
    history: list[tuple[int, float]]
    dropped: int
    settings: Settings
    versions: dict[str, str]
    seconds: float

    @property
    def seed(self) -> int:
        """Seed of the random starts."""
        return self.settings.seed

    def summary(self) -> str:
        """One line for people; it says so when starts were dropped."""
        lost = f", {self.dropped} of {self.settings.starts} starts dropped (NaN)" if self.dropped else ""
        what = f"{self.settings.kind} {self.settings.objective} {self.settings.size}"
        return f"{what}: kappa {self.cost:.6f}, {self.status.value} at step {self.steps}{lost}"
