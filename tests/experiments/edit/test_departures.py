"""A queue of departures, by hand and by brute force; what cancellations cost a swap-private counter."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trilift.counters import Counter
from trilift.experiments.edit.departures import BOT_SLOT, Departures, load_departures, read_departures
from trilift.experiments.edit.swap_loss import swap_losses
from trilift.lift import Chain, materialise
from trilift.lift.errors import ArtifactFormatError, ParameterError

HEADER = "year,month,day,dep_time,sched_dep_time,dep_delay,origin\n"
TABLE = (
    HEADER
    + """2013,1,1,5,2350,15,JFK
2013,1,1,NA,700,NA,JFK
2013,1,1,1,1,0,JFK
2013,1,1,2,1,1,LGA
2013,1,1,17,1,16,JFK
2013,1,1,2,1,1,JFK
"""
)


def departures(ready: list[int], late: list[int], *, minutes: int = 1) -> Departures:
    return Departures(np.array(ready), np.array(late), minutes, 0)


def test_reading_a_table(tmp_path: Path) -> None:
    """A flight of 23:50 that left at 0:05 belongs to the next day; other airports are left out."""
    (tmp_path / "f.csv").write_text(TABLE)
    found = read_departures(tmp_path / "f.csv", origin="JFK", slot_minutes=2)
    assert found.ready.tolist() == [1, 2, 17, 1445]
    assert found.late.tolist() == [0, 0, 1, 0]
    assert found.cancelled == 1
    assert found.slots().tolist() == [1, 2, 9, 723]
    with pytest.raises(ParameterError, match="origin must be an airport of the table, got 'BOS'"):
        read_departures(tmp_path / "f.csv", origin="BOS", slot_minutes=2)
    (tmp_path / "g.csv").write_text(HEADER + "2013,1,1,x,1,y,JFK\n")
    with pytest.raises(ArtifactFormatError, match="not the table of flights"):
        read_departures(tmp_path / "g.csv", origin="JFK", slot_minutes=2)


def test_a_queue_solved_by_hand() -> None:
    """Four leave in minute 0, one in minute 2, one in 9: slots 0 to 4 are taken, then 9."""
    queue = departures([0, 0, 0, 0, 2, 9], [1, 0, 1, 1, 0, 1])
    assert queue.slots().tolist() == [0, 1, 2, 3, 4, 9]
    assert queue.moved().tolist() == [4, 3, 2, 1, 0, 0]
    _ = BOT_SLOT
    assert queue.stream().tolist() == [1, 0, 1, 1, 0, _, _, _, _, 1]
    assert queue.without(1).stream(slots=10).tolist() == [1, 1, 1, 0, _, _, _, _, _, 1]
    with pytest.raises(ParameterError, match="slots must be an integer >= 10, got 9"):
        queue.stream(slots=9)


def shifted(stream: np.ndarray, first: int, moved: int) -> np.ndarray:
    """The stream with the item of slot ``first`` taken out and the next ``moved`` ones one slot earlier."""
    after = stream.copy()
    after[first : first + moved] = stream[first + 1 : first + moved + 1]
    after[first + moved] = BOT_SLOT
    return after


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 1)), min_size=1, max_size=12), st.data())
def test_a_cancelled_flight_makes_an_edit_neighbour(
    flights: list[tuple[int, int]], data: st.DataObject
) -> None:
    """The queue is simulated slot by slot; a cancellation moves exactly those that ``moved`` says."""
    flights.sort(key=lambda pair: pair[0])
    queue = departures([ready for ready, _ in flights], [late for _, late in flights])
    waiting, served, expected = list(flights), 0, []
    while served < len(flights):
        slot = len(expected)
        ready = bool(waiting) and waiting[0][0] <= slot
        expected.append(waiting.pop(0)[1] if ready else BOT_SLOT)
        served += ready
    assert queue.stream().tolist() == expected
    gone = data.draw(st.integers(0, len(flights) - 1))
    stream = queue.stream(slots=30)
    other = queue.without(gone).stream(slots=30)
    assert other.tolist() == shifted(stream, int(queue.slots()[gone]), int(queue.moved()[gone])).tolist()
    sums = [np.cumsum(np.maximum(x, 0)) for x in (stream, other)]
    # the cancelled flight counted 1: the sums with it are ahead; it counted 0: they are behind
    ahead = {0, 1} if flights[gone][1] else {0, -1}
    assert set((sums[0] - sums[1]).tolist()) <= ahead


def test_the_flights_of_a_year() -> None:
    """Twenty cancellations, the one with the longest queue behind it among them."""
    queue = load_departures()
    moved, slots, stream = queue.moved(), queue.slots(), queue.stream()
    assert (len(queue.late), queue.cancelled) == (109_416, 1_863)
    for index in [*range(0, len(moved), 5_800), int(moved.argmax())]:
        other = queue.without(index).stream(slots=len(stream))
        assert np.array_equal(other, shifted(stream, int(slots[index]), int(moved[index])))


def chain_of(counter: Counter) -> Chain:
    return counter.setup.chain


@pytest.mark.parametrize("names", [["direct-max-64"], ["stage-max-9", "direct-max-16"]])
def test_the_loss_is_that_of_the_matrix(names: list[str]) -> None:
    """Against R itself, with random changes; a swap costs no more than epsilon."""
    n = 60
    counter = Counter(1, horizon=n, chain=names, simulation_seed=1)
    scales = [float(scale) for scale in counter.setup.ledger.scales]
    dense = materialise(chain_of(counter).to_float(), n)
    _, R = dense.scaled(np.array(scales))
    draws = np.random.default_rng(3)
    for _ in range(20):
        change = draws.integers(-1, 2, n) * (draws.random(n) < 0.3)
        found = swap_losses(chain_of(counter), [dict(enumerate(change.tolist()))], scales=scales)
        assert found.tolist() == pytest.approx([float(np.abs(R @ change).sum())], rel=1e-12)
    swaps = swap_losses(chain_of(counter), [{t: -1.0} for t in range(n - 9)], scales=scales)
    assert 0.2 < swaps.min() <= swaps.max() <= 1.0
