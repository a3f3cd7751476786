"""The comparison of searches, scaled down: it runs, finds valid figures and counts as it says (no time is
asserted)."""

import json

import pytest
from trilift.experiments import search_speed
from trilift.experiments.search_speed import Clock


@pytest.mark.slow
def test_records_and_json(capsys, monkeypatch):
    assert search_speed.main(["--scale", "0.02", "--size", "8", "--json"]) == 0
    stage, *direct = json.loads(capsys.readouterr().out)
    assert stage["size"] == 153
    assert stage["seconds_below"].keys() == {"0.0640", "0.0605"}
    assert 0.05 < stage["interior_kappa_mean"] < 0.1
    assert [record["objective"] for record in direct] == ["max", "mean"]
    for record, published in zip(direct, (0.3831, 0.3288), strict=True):
        assert record["published_kappa"] == published
        assert record["recipe"]["adam_steps"] == 1000
        ours, recipe = record["ours"]["seconds_to_target"], record["recipe"]["seconds_to_target"]
        assert (ours is None) == (record["ours"]["kappa"] >= published)
        if ours is not None:
            counted = record["recipe"]["seconds"] if recipe is None else recipe
            assert record["times_shorter"] == pytest.approx(counted / ours, abs=0.01)

    # the same records as lines; of the parts that are asked for alone
    monkeypatch.setattr(search_speed, "direct_record", lambda name, **_: direct[name == "mean"])
    monkeypatch.setattr(search_speed, "stage_record", lambda **_: stage)
    assert search_speed.main(["--size", "8", "--parts", "direct"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["T_8 max", "T_8 mean"]
    assert all(
        f"the recipe after {record['recipe']['seconds_to_target']} s" in line
        for line, record in zip(lines, direct, strict=True)
    )
    assert search_speed.main(["--parts", "stage"]) == 0
    assert capsys.readouterr().out.startswith("stage 153: interior kappa_mean 0.0")


def test_the_clock_keeps_the_first_time():
    clock = Clock((0.5, 0.1))
    clock.see(0.7)
    clock.see(0.4)
    first = clock.reached[0.5]
    clock.report(3, 5, 0.3)
    assert clock.reached == {0.5: first, 0.1: None}
    assert first is not None
    assert clock.best == 0.3
