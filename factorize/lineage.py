"""How a stage was found: the searches that led to it, as data, and doing them again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, replace

from trilift.factorize.progress import Report
from trilift.factorize.result import SearchResult, SearchStatus
from trilift.factorize.schedule import Schedule
from trilift.factorize.search import run_search
from trilift.factorize.settings import Settings, make_settings
from trilift.lift.checks import fail
from trilift.lift.errors import ParameterError, StateError

__all__ = ["replay", "settings_from_json"]


def settings_from_json(text: str) -> Settings:
    """Read settings back from :meth:`Settings.as_json`, with every check of a new search.

    Raises:
        ParameterError: not such a text, or a value that a search would refuse.
    """
    try:
        data = json.loads(text)
        wanted = {field.name for field in fields(Settings)}
        if not isinstance(data, dict) or data.keys() != wanted:
            raise ValueError("other names than " + ", ".join(sorted(wanted)))
        schedule = Schedule(**data["schedule"])
    except ParameterError:
        raise
    except (TypeError, ValueError) as error:
        raise ParameterError(f"settings must be the JSON of a search's settings: {error}") from None
    initial = data.pop("initial")
    if not isinstance(initial, str):
        raise fail("initial", "a hash as text", initial)
    if data["kind"] not in ("two-sided", "one-sided", "direct"):
        raise fail("kind", "one of 'two-sided', 'one-sided', 'direct'", data["kind"])
    checked = make_settings(**(data | {"schedule": schedule, "initial": None}))
    return replace(checked, initial=initial)


def replay(lineage: Sequence[Settings], *, progress: bool | Report | None = None) -> SearchResult:
    """Do the searches of a lineage again, each around the result of the one before.

    On the machine and versions of the first time the result is the same, bit for bit. Elsewhere rounding
    differs, and with it, after thousands of steps, the local minimum: expect a cost of the same quality.

    Args:
        lineage: the settings of every search, first one first; the first starts from nothing.
        progress: see :func:`trilift.factorize.progress.reporter`.

    Raises:
        ParameterError: an empty lineage, or one whose first search starts from a stage.
        StateError: a search on the way found nothing to go on from.
    """
    steps = list(lineage)
    if not steps or not all(isinstance(settings, Settings) for settings in steps):
        raise ParameterError("lineage must be a sequence of at least one Settings")
    if steps[0].initial:
        raise ParameterError("lineage must begin with a search that starts from nothing")
    result = run_search(steps[0], progress=progress)
    for settings in steps[1:]:
        if result.status is SearchStatus.INTERRUPTED:
            break
        if settings.initial and result.stage is None:
            raise StateError("a search of the lineage found no stage for the next one to start from")
        result = run_search(settings, initial=result.stage if settings.initial else None, progress=progress)
    return result
