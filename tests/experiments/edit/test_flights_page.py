"""docs/edit-streams.md says what the command prints; its examples are run, and its estimates are near."""

import doctest
import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trilift.cli import main
from trilift.counters.edit.design import make_design
from trilift.counters.edit.statement import first_wait
from trilift.experiments.edit import flights_queue
from trilift.experiments.edit.departures import BOT_SLOT, Departures
from trilift.experiments.edit.flights_counts import Counts, counts_of, masked_stream
from trilift.experiments.edit.flights_page import page_sentences, page_tables
from trilift.experiments.edit.flights_pictures import draw_counts, draw_losses, draw_queue
from trilift.experiments.edit.flights_queue import change_of, example_of, write_stream
from trilift.experiments.gaussian import fill_in
from trilift.lift.errors import ParameterError

PAGE = Path(__file__).resolve().parents[3] / "docs" / "edit-streams.md"


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_says_what_the_command_prints(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    flights_queue.main(["--json"])
    record = json.loads(capsys.readouterr().out)
    prose = " ".join(page.split())
    assert [sentence for sentence in page_sentences(record) if sentence not in prose] == []
    tables = page_tables(record)
    assert set(re.findall(r"<!-- table: (\w+) -->", page)) == set(tables)
    assert fill_in(page, tables) == page
    rows = {row["mechanism"]: row for row in record["counts"]}
    assert 36 < rows["SimECC"]["rmse"] < 44  # about 40
    assert 3.5 < rows["SimECC"]["updates"] / 365 < 4.5  # about four times a day
    assert 0.08 < rows["HorizonGaussian"]["rmse"] / record["queue"]["late"] < 0.12  # a tenth
    assert rows["SimECC, extrapolated"]["rmse"] > 0.9 * rows["SimECC"]["rmse"]  # it gains nothing


def test_what_the_prose_says_about_prices() -> None:
    ask: dict[str, Any] = {"delta": Fraction(1, 10**6), "horizon": flights_queue.HORIZON, "rate": 0.1}
    sharp, paper = (make_design(1, accounting=name, **ask).predict().rmse for name in ("sharp", "paper"))
    assert 8.0 < paper / sharp < 9.5  # more than eight times
    waits = [first_wait(make_design(1, mechanism="ecc", accounting=a, **ask))[1] for a in ("sharp", "paper")]
    assert 225 < waits[0] < 255  # some 240
    assert 10_500 < waits[1] < 11_500  # 11,000


def test_the_examples_are_run() -> None:
    done = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert done.failed == 0
    assert done.attempted >= 8


def test_pictures_and_links_are_there(page: str) -> None:
    names = re.findall(r"\]\(([\w.-]+)(?:#[\w-]+)?\)", page)
    assert len(names) > 5
    assert [name for name in names if not (PAGE.parent / name).is_file()] == []
    assert all((PAGE.parent / name).stat().st_size < 250_000 for name in names if name.endswith(".png"))


def small() -> Departures:
    """Twenty-two aircraft that all leave their gates at midnight, every other one late; one at 01:00."""
    late = np.array([0, 1] * 11 + [1])
    return Departures(np.array([0] * 22 + [60]), late, 2, 0)


def test_the_example_and_its_change() -> None:
    queue = small()
    assert example_of(queue) == 1
    assert change_of(queue, 22) == {30: 1}
    assert change_of(queue, 20) == {20: -1, 21: 1}  # 0, 1 becomes 1, no event
    with pytest.raises(ParameterError, match="20 others behind it"):
        example_of(Departures(np.array([0]), np.array([1]), 2, 0))


def test_the_stream_as_a_file_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row a slot, an empty cell where nobody takes off; the command line takes it as it is."""
    monkeypatch.setattr(flights_queue, "HORIZON", 40)
    write_stream(small(), tmp_path / "s.csv")
    lines = (tmp_path / "s.csv").read_text().splitlines()
    assert lines[:3] == ["slot,late", "2013-01-01 00:00,0", "2013-01-01 00:02,1"]
    assert lines[31] == "2013-01-01 01:00,1"
    assert lines[32] == "2013-01-01 01:02,"
    options = ["--column", "late", "--neighbours", "edit", "--check", "-n", "40", "--mechanism", "gaussian"]
    assert main(["count", str(tmp_path / "s.csv"), *options]) == 0
    assert capsys.readouterr().out == "40 rows, fine\n"
    with pytest.raises(FileExistsError):
        write_stream(small(), tmp_path / "s.csv")


def test_counts_and_pictures_of_a_small_queue(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    queue = small()
    counts = counts_of(queue, slots=400)
    assert counts.true[-1] == queue.late.sum()
    assert set(counts.shown) == {row["mechanism"] for row in counts.records}
    assert masked_stream(queue, slots=400).count() == 23
    assert BOT_SLOT not in masked_stream(queue, slots=400).compressed()
    late = np.array([0] * 3 + [1] + [0] * 20)
    longer = Departures(np.array([0] * 24), late, 2, 0)
    draw_queue(Departures(np.array([*[20] * 24, 200]), np.append(late, 0), 2, 0), tmp_path / "q.png")
    draw_losses(longer, np.linspace(0, 2, 24), tmp_path / "l.png", epsilon=1.0)
    true = np.arange(17 * 720)
    names = ("Counter", "SimECC", "ECC")
    draw_counts(Counts(true, dict.fromkeys(names, true + 1), []), tmp_path / "c.png")
    for name in ("q", "l", "c"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
