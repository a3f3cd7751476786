"""The figures and pictures of docs/edit-streams.md: a queue of departures, and what cancellations give away.

    python -m trilift.experiments.edit.flights_queue --json           # the figures
    python -m trilift.experiments.edit.flights_queue --out docs       # pictures (extra demo) and page
    python -m trilift.experiments.edit.flights_queue --csv jfk.csv    # the stream, for trilift count

The released counts come from public seeds: the flights are public, and pictures shall be the same for
everybody.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from trilift.counters import Counter
from trilift.experiments.edit.departures import BOT_SLOT, Departures, load_departures
from trilift.experiments.edit.swap_loss import swap_losses
from trilift.lift.errors import ParameterError

__all__ = [
    "EXAMPLE_BEHIND",
    "HORIZON",
    "change_of",
    "example_of",
    "losses",
    "main",
    "queue_record",
    "swap_record",
    "write_stream",
]

FloatArray = np.ndarray[Any, np.dtype[np.float64]]

HORIZON = 366 * 720
"""Slots of two minutes in a year and a day: how many there are must not depend on the flights."""

EXAMPLE_BEHIND = 20


def example_of(queue: Departures) -> int:
    """Return the first late aircraft of the year with exactly 20 others behind it.

    Raises:
        ParameterError: there is none.
    """
    found = np.flatnonzero((queue.moved() == EXAMPLE_BEHIND) & (queue.late == 1))
    if not len(found):
        raise ParameterError("queue must have a late aircraft with 20 others behind it")
    return int(found[0])


def change_of(queue: Departures, index: int) -> dict[int, int]:
    """Return what a cancellation changes: slot to (input with the flight) - (input without it).

    BOT counts 0, as it does in a sum.
    """
    slots, moved = queue.slots(), queue.moved()
    return _change(queue.late, int(slots[index]), index, int(moved[index]))


def _change(late: Any, slot: int, index: int, moved: int) -> dict[int, int]:
    items = late[index : index + moved + 1]
    steps = items - np.append(items[1:], 0)
    return {slot + int(place): int(steps[place]) for place in np.flatnonzero(steps)}


def losses(queue: Departures, counter: Counter) -> FloatArray:
    """Return a counter's privacy loss about the cancellation of each flight, shape (n,): see swap_losses."""
    places = zip(queue.slots().tolist(), queue.moved().tolist(), strict=True)
    changes = [_change(queue.late, slot, index, behind) for index, (slot, behind) in enumerate(places)]
    return swap_losses(counter.setup.chain, changes, scales=counter.setup.ledger.scales)


def queue_record(queue: Departures) -> dict[str, Any]:
    """Return the figures of the queue itself."""
    moved, slots = queue.moved(), queue.slots()
    index = example_of(queue)
    behind = slice(index, index + EXAMPLE_BEHIND + 1)
    return {
        "flights": len(queue.late),
        "cancelled": queue.cancelled,
        "late": int(queue.late.sum()),
        "slot_minutes": queue.slot_minutes,
        "slots": HORIZON,
        "rate": float(queue.late.sum() / HORIZON),
        "mean_wait_minutes": float((slots - queue.first_slots()).mean() * queue.slot_minutes),
        "moved_mean": float(moved.mean()),
        "moved_median": float(np.median(moved)),
        "moved_max": int(moved.max()),
        "moved_share": float(np.mean(moved > 0)),
        "example": {
            "time": _moment(int(slots[index]) * queue.slot_minutes),
            "behind": EXAMPLE_BEHIND,
            "late": queue.late[behind].tolist(),
            "changed_inputs": len(change_of(queue, index)),
        },
    }


def swap_record(queue: Departures, *, epsilon: Any = 1) -> tuple[dict[str, Any], FloatArray]:
    """Return what a swap-private counter gives away about cancellations: figures, and each flight's loss."""
    counter = Counter(epsilon, horizon=HORIZON, simulation_seed=1)
    loss = losses(queue, counter)
    return {
        "epsilon": float(counter.epsilon),
        "chain": list(counter.setup.names or ()),
        "sd": counter.sd(HORIZON),
        "loss_mean": float(loss.mean()),
        "loss_median": float(np.median(loss)),
        "loss_p99": float(np.quantile(loss, 0.99)),
        "loss_max": float(loss.max()),
        "share_above_epsilon": float(np.mean(loss > float(counter.epsilon))),
        "example_loss": float(loss[example_of(queue)]),
    }, loss


def write_stream(queue: Departures, path: Path) -> None:
    """Write the stream as a CSV, a row a slot: its time, and an empty cell where nobody takes off.

    Raises:
        OSError: the file exists, or cannot be written.
    """
    cells = ["" if item == BOT_SLOT else str(item) for item in queue.stream(slots=HORIZON).tolist()]
    rows = [f"{_moment(slot * queue.slot_minutes)},{cell}\n" for slot, cell in enumerate(cells)]
    with open(path, "x", encoding="utf-8", newline="\n") as file:
        file.write("slot,late\n" + "".join(rows))


def _moment(minute: int) -> str:
    days, rest = divmod(minute, 1440)
    return f"{date(2013, 1, 1) + timedelta(days)} {rest // 60:02d}:{rest % 60:02d}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures, and write the pictures or the stream."""
    from trilift.experiments.edit.flights_counts import counts_of
    from trilift.experiments.edit.flights_page import page_tables
    from trilift.experiments.edit.flights_pictures import draw_counts, draw_losses, draw_queue
    from trilift.experiments.gaussian import fill_in

    parser = argparse.ArgumentParser(description="Figures and pictures of docs/edit-streams.md.")
    parser.add_argument("--out", type=Path, help="folder of the pictures and the page, which are replaced")
    parser.add_argument("--csv", type=Path, help="new file for the stream")
    parser.add_argument("--json", action="store_true", help="print the figures")
    options = parser.parse_args(arguments)
    queue = load_departures()
    if options.csv is not None:
        write_stream(queue, options.csv)
    if options.out is None and not options.json:
        return
    swap, loss = swap_record(queue)
    counts = counts_of(queue, slots=HORIZON)
    record = {"queue": queue_record(queue), "swap": swap, "counts": counts.records}
    if options.out is not None:
        draw_queue(queue, options.out / "edit-queue.png")
        draw_losses(queue, loss, options.out / "edit-losses.png", epsilon=swap["epsilon"])
        draw_counts(counts, options.out / "edit-counts.png")
        page = options.out / "edit-streams.md"
        if page.exists():
            text = fill_in(page.read_text(encoding="utf-8"), page_tables(record))
            page.write_text(text, encoding="utf-8")
    if options.json:
        print(json.dumps(record, indent=2, allow_nan=False))


if __name__ == "__main__":
    main()
