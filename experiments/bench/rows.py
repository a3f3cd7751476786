"""What is asked of trilift and of every peer, and the rows that the answers make.

A row keeps the contract of ``trilift bench --json``, "tool", "version", "mechanism", "n", "max_se",
"mean_se", "how" and "released_per_s", and says more: "privacy" ("pure", "gaussian", or "none" for
a sampler that is no counter), "noise" ("exact" or "float"), "causal" (whether a step is released
before the next one comes), "best_for", "theory_max_se" and "theory_mean_se" (None where
there is no theory here), "note".
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from trilift.experiments.bench.choices import (
    Choice,
    averaged_choices,
    dpcrpy_choices,
    opendp_choices,
)

__all__ = ["Ask", "Line", "dpcrpy_lines", "jax_lines", "opendp_lines", "our_command", "our_lines"]

Ask = Callable[[Sequence[Mapping[str, Any]]], dict[str, Any]]
"""Sends requests to one tool's process and returns its version and answers."""

SAMPLES = 1 << 15
_SLOW = 1 << 20  # OpenDP's trees take ten seconds a call from here on


@dataclass
class Line:
    """A row in the making.

    Attributes:
        row: what is known without measuring its speed.
        speed: the request that measures it, None if there is nothing to time.
        rates: what was measured, one a round.
        once: whether it is timed in the first round only.
    """

    row: dict[str, Any]
    speed: dict[str, Any] | None = None
    rates: list[float] = field(default_factory=list)
    once: bool = False

    def finished(self) -> dict[str, Any]:
        """Return the row with the median rate."""
        return {**self.row, "released_per_s": median(self.rates) if self.rates else None}


def _row(tool: str, n: int, mechanism: str, **more: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "tool": tool,
        "version": "",
        "mechanism": mechanism,
        "n": n,
        "max_se": None,
        "mean_se": None,
        "how": "exact",
        "released_per_s": None,
        "privacy": "pure",
        "noise": "exact",
        "causal": True,
        "best_for": "both",
        "theory_max_se": None,
        "theory_mean_se": None,
        "note": "",
    }
    return row | more


def _from_choice(tool: str, n: int, choice: Choice, **more: Any) -> dict[str, Any]:
    return _row(
        tool,
        n,
        choice.title,
        best_for=choice.best_for,
        theory_max_se=choice.max_se,
        theory_mean_se=choice.mean_se,
        **more,
    )


def dpcrpy_lines(n: int, ask: Ask, *, seconds: float) -> list[Line]:
    """Return dpcrpy's trees with the errors that its own code states."""
    choices = dpcrpy_choices(n)
    reply = ask([{"do": "errors", "n": n, "mechanism": choice.asked} for choice in choices])
    lines = []
    for choice, error in zip(choices, reply["answers"], strict=True):
        row = _from_choice(
            "dpcrpy",
            n,
            choice,
            noise="float",
            version=reply["version"],
            max_se=error["max"],
            mean_se=error["mean"],
        )
        speed = {"do": "speed", "n": n, "mechanism": choice.asked, "seconds": seconds}
        lines.append(Line(row, speed, once=choice.best_for == "mean"))
    return lines


def opendp_lines(n: int, ask: Ask, *, seconds: float, weights_up_to: int) -> list[Line]:
    """Return trees over OpenDP's primitives, and its sampler alone.

    Up to a horizon errors are those of the weights that its code applies to every node; beyond, those of
    least squares, which the weights are, and the mean squared error of the timed runs stands beside.
    """
    lines = []
    for choice in opendp_choices(n):
        asked = {"n": n, **choice.asked}
        causal = choice.asked["kind"] == "tree"
        row = _from_choice("OpenDP", n, choice, causal=causal, max_se=choice.max_se, mean_se=choice.mean_se)
        if n <= weights_up_to:
            reply = ask([{"do": "errors", **asked}])
            row |= {f"{name}_se": value for name, value in reply["answers"][0].items()}
            row["note"] = "weights read from its code"
        else:
            reply = ask([{"do": "scale", **asked}])
            row["note"] = "weights of least squares" if not causal else "weights 0 and 1"
        row["version"] = reply["version"]
        speed = {"do": "speed", **asked, "seconds": seconds}
        lines.append(Line(row, speed, once=choice.best_for == "mean" or n >= _SLOW))
    scale = 5
    sampler = _row(
        "OpenDP",
        n,
        "exact vector sampler, samples",
        privacy="none",
        version=lines[0].row["version"],
        note=f"make_laplace, {SAMPLES} integers a call, scale {scale}",
    )
    speed = {"do": "speed", "n": SAMPLES, "kind": "sampler", "branching": scale, "seconds": seconds}
    lines.append(Line(sampler, speed))
    return lines


def jax_lines(n: int, ask: Ask, *, seconds: float, blt: Mapping[str, Any], sigma_sq: float) -> list[Line]:
    """Return jax_privacy's BLT, optimised by its own code, and the Toeplitz square root.

    Args:
        n: steps.
        ask: sends requests.
        seconds: that each speed is measured for.
        blt: the parameters that its optimiser found.
        sigma_sq: variance of the Gaussian noise for sensitivity 1.
    """
    reply = ask([{"do": "errors", "n": n, "blt": blt}, {"do": "errors", "n": n, "blt": None}])
    buffers = len(blt["buf_decay"])
    titles = (f"BLT, {buffers} buffers, optimised for the worst step", "Toeplitz square root")
    speeds = ({"do": "speed", "n": n, "blt": blt, "seconds": seconds}, None)
    lines = []
    for title, errors, speed in zip(titles, reply["answers"], speeds, strict=True):
        row = _row("jax_privacy", n, title, privacy="gaussian", noise="float", version=reply["version"])
        row |= {"max_se": errors["max"] * sigma_sq, "mean_se": errors["mean"] * sigma_sq}
        if speed is None:
            row["note"] = "its code has no noise of it that streams"
        lines.append(Line(row, speed))
    return lines


def our_lines(n: int, ask: Ask, *, seconds: float) -> list[Line]:
    """Return our counters, and the averaged k-ary tree, of which no package exists."""
    counters: list[tuple[str, str, str, dict[str, Any]]] = []
    for objective in ("max", "mean"):
        for kind, words in (
            ("default", "Counter"),
            ("best", "Counter, best chain"),
            ("gaussian", "GaussianCounter"),
            ("gaussian-best", "GaussianCounter, best chain"),
        ):
            asked = {"kind": kind, "n": n, "objective": objective}
            counters.append((words, objective, "gaussian" if kind.startswith("g") else "pure", asked))
    averaged = averaged_choices(n)
    arity = averaged[0].asked["arity"]
    asked = {"kind": "averaged", "n": n, "objective": "max", "arity": arity}
    counters.append((f"Counter, {arity}-ary averaged chain", "both", "pure", asked))
    reply = ask([{"do": "errors", "counter": asked} for *_, asked in counters])
    lines = []
    for (words, objective, privacy, asked), errors in zip(counters, reply["answers"], strict=True):
        for path in ("fast", "plain") if asked["kind"] == "default" and objective == "max" else ("fast",):
            title = f"{words}, for {objective}" if objective != "both" else words
            row = _row(
                "trilift", n, f"{title} [{path}]", privacy=privacy, best_for=objective, path=path,
                kind=asked["kind"], version=reply["version"], max_se=errors["max"], mean_se=errors["mean"],
                note=", ".join(errors["chain"]),
            )  # fmt: skip
            known = asked | ({"chain": errors["chain"]} if errors["chain"] else {})
            lines.append(Line(row, {"do": "speed", "counter": known, "seconds": seconds, "path": path}))
    for choice in averaged:
        row = _from_choice("averaged tree", n, choice, max_se=choice.max_se, mean_se=choice.mean_se)
        row |= {"version": "formula", "noise": "", "note": "exact cost in closed form (trilift.lift)"}
        lines.append(Line(row))
    return lines


def our_command() -> list[str]:
    """Return the command of our own process."""
    return [sys.executable, "-m", "trilift.experiments.bench.ours"]
