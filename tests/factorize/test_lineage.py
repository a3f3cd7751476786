"""Searches as data: settings go through JSON and back, and a lineage can be done again."""

import json

import numpy as np
import pytest
from trilift.factorize import replay, run_search, search_direct, search_stage, settings_from_json
from trilift.lift.errors import ParameterError

QUICK = {"steps": 50, "starts": 2, "progress": False}


def test_a_lineage_done_again_gives_the_same_stage():
    first = search_stage(4, objective="mean", seed=3, **QUICK)
    second = search_stage(4, objective="max", seed=4, initial=first.stage, **QUICK)
    texts = [result.settings.as_json() for result in (first, second)]
    settings = [settings_from_json(text) for text in texts]
    assert settings == [first.settings, second.settings]
    again = replay(settings, progress=False)
    np.testing.assert_array_equal(again.stage.A, second.stage.A)
    np.testing.assert_array_equal(again.stage.B, second.stage.B)
    assert again.cost == second.cost
    assert again.settings == second.settings


def test_a_direct_search_can_be_replayed_too():
    found = search_direct(4, objective="mean", **QUICK)
    assert replay([found.settings], progress=False).cost == found.cost


def test_lineages_that_make_no_sense_are_refused():
    first = search_stage(4, objective="mean", **QUICK)
    second = search_stage(4, objective="mean", initial=first.stage, **QUICK)
    for bad in ([], [second.settings], ["first"]):
        with pytest.raises(ParameterError, match="lineage"):
            replay(bad)
    with pytest.raises(ParameterError, match="initial"):
        run_search(second.settings)
    with pytest.raises(ParameterError, match="initial"):
        run_search(first.settings, initial=first.stage)


@pytest.mark.parametrize(
    "change",
    [
        {"size": 1},
        {"kind": "sideways"},
        {"objective": "median"},
        {"steps": None},
        {"initial": None},
        {"spread": [0.3]},
        {"schedule": {"rate": 0.1}},
        {"schedule": {"rate": float("nan"), "smoothing": [1, 1], "exponent": [1, 1], "settled": 0.5}},
        {"schedule": {"rate": 0.1, "smoothing": [1, 0], "exponent": [1, 1], "settled": 0.5}},
        {"schedule": {"rate": 0.1, "smoothing": [1, 1], "exponent": [1, 0], "settled": 0.5}},
        {"schedule": {"rate": 0.1, "smoothing": [1, 1], "exponent": [1, 1], "settled": 1.5}},
        {"schedule": {"rate": 0.1, "smoothing": 1.0, "exponent": [1, 1], "settled": 0.5}},
        {"extra": 1},
    ],
    ids=str,
)
def test_settings_are_checked_on_reading(change):
    good = json.loads(search_stage(3, objective="mean", steps=1, starts=1, progress=False).settings.as_json())
    with pytest.raises(ParameterError):
        settings_from_json(json.dumps(good | change))


@pytest.mark.parametrize("text", ["", "[]", "{}", "nonsense"])
def test_other_texts_are_not_settings(text):
    with pytest.raises(ParameterError, match="settings must be"):
        settings_from_json(text)
