"""The year of flights as turnstile streams: what becomes of gaps, and the figures that are kept."""

import json
from pathlib import Path

import numpy as np
import pytest
from trilift.experiments.turnstile.flights import load_year, read_year, truths
from trilift.experiments.turnstile.flights_page import RECORD, SERIES, draw, measured, table
from trilift.lift.errors import ArtifactFormatError

DOCS = Path(__file__).resolve().parents[3] / "docs"

HEADER = "year,month,day,dep_time,sched_dep_time,dep_delay,tailnum,origin,dest,air_time\n"


@pytest.fixture(scope="module")
def record() -> dict:
    return json.loads((DOCS / "measurements" / RECORD).read_text(encoding="utf-8"))


def test_events_of_a_small_table(tmp_path: Path) -> None:
    """N1 lands at 60 when N2 departs; N2 departs twice; the next ones are missing something each."""
    rows = [
        "2013,1,1,10,5,5,N1,JFK,LAX,50",  # 10 to 60
        "2013,1,1,100,100,0,N2,JFK,LAX,100",  # 60 to 160
        "2013,1,1,158,130,28,N2,LGA,ORD,30",  # 118 to 148, though N2 is in the air
        "2013,1,1,NA,130,NA,N3,LGA,ORD,NA",
        "2013,1,1,130,130,0,N4,LGA,ORD,NA",
        "2013,1,1,130,130,0,NA,LGA,ORD,10",
        "2013,1,2,2355,2355,10,N1,JFK,LAX,20",  # departs after midnight: 2885 to 2905
    ]
    (tmp_path / "flights.csv").write_text(HEADER + "\n".join(rows) + "\n")
    year = read_year(tmp_path / "flights.csv")
    assert (year.gaps.never_left, year.gaps.no_air_time, year.gaps.no_tail_number) == (1, 1, 1)
    events = year.in_the_air()
    assert events.minute.tolist() == [10, 60, 60, 118, 148, 160, 2885, 2905]
    assert events.signs.tolist() == [1, -1, 1, 1, -1, -1, 1, -1]
    assert events.tails == ["N1", "N1", "N2", "N2", "N2", "N2", "N1", "N1"]
    assert events.routes[3] == ("LGA", "ORD")
    distinct, moment, twice = truths(events.tails, events.signs)
    assert distinct.tolist() == [1, 0, 1, 1, 1, 0, 1, 0]
    assert moment.tolist() == [1, 0, 1, 4, 1, 0, 1, 0]
    assert twice == 1
    used = year.in_use()
    assert used.signs.tolist() == [1, 1, 1, 1, -1, -1, -1, -1]
    assert used.minute.tolist() == [10, 60, 118, 2885, 43210, 43260, 43318, 46085]


@pytest.mark.parametrize("text", ["", "year\n", HEADER + "2013,1,1\n", HEADER + "2013,1,1,x,y,z,N1,A,B,5\n"])
def test_other_tables(tmp_path: Path, text: str) -> None:
    (tmp_path / "flights.csv").write_text(text)
    with pytest.raises(ArtifactFormatError):
        read_year(tmp_path / "flights.csv")


@pytest.mark.slow
def test_kept_figures_are_those_of_the_year(record: dict) -> None:
    """The facts of both streams, and two series from their public seed, value by value."""
    found = measured(load_year(), names=["use-grouped", "use-routes"])
    series = found.pop("series")
    assert found == {name: value for name, value in record.items() if name != "series"}
    assert series == {name: record["series"][name] for name in series}


def test_kept_figures_agree_among_themselves(record: dict) -> None:
    for series in SERIES:
        kept = record["series"][series.name]
        true, low, high = (np.array(kept[name]) for name in ("true", "low", "high"))
        assert kept["outside"] == np.sum((true < low - 0.1) | (true > high + 0.1))
        assert kept["mean_true"] == pytest.approx(true.mean())
        assert kept["mean_error"] == pytest.approx(np.abs(np.array(kept["estimate"]) - true).mean(), abs=0.1)


def test_the_page_says_what_was_measured(record: dict) -> None:
    page = (DOCS / "turnstile.md").read_text(encoding="utf-8")
    assert table(record) in page
    air, used = record["streams"]["air"], record["streams"]["use"]
    for figure in (
        f"{record['flights']:,} flights",
        f"{record['never_left']:,} never left",
        f"{record['no_air_time']:,} left",
        f"{air['inserted_again']} times",
        f"{air['events']:,} events",
        f"at most {air['most']} aircraft",
        f"at most {used['most']:,}",
        f"{record['horizon']:,}",
    ):
        assert figure in " ".join(page.split()), figure
    assert record["no_tail_number"] == 0


def test_what_is_concluded(record: dict) -> None:
    """Percentages of the page and of the README."""
    page, readme = ((DOCS / name).read_text(encoding="utf-8") for name in ("turnstile.md", "../README.md"))
    worst = {name: found["worst_factor"] for name, found in record["series"].items()}
    assert 1.05 < worst["use-hybrid"] < 1.06
    assert 1.03 < worst["use-routes"] < 1.04
    assert 3 < worst["use-grouped"] < 4
    assert min(worst["air-grouped"], worst["air-hybrid"], worst["air-routes"]) > 10
    for text, words in (
        (page, "tells them within 6 %, and grouped MinHash"),
        (page, "within a factor of 4"),
        (page, f"it is {record['streams']['use']['largest_sum_less_distinct']:,} above D at times"),
        (readme, "aircraft in use (about 3,100) come out within 6 %"),
        (readme, "moment of the routes within 4 %"),
    ):
        assert words in " ".join(text.split()), words
    routes = record["series"]["use-routes"]
    assert routes["mean_error"] < 0.011 * routes["mean_true"]
    assert record["streams"]["air"]["largest_sum_less_distinct"] == 2


def test_the_picture_is_drawn(record: dict, tmp_path: Path) -> None:
    draw(record, tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 10_000
