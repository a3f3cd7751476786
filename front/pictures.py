"""Heat maps of factors, with matplotlib (extra ``plot``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from trilift.experiments.figures import new_figure
from trilift.lift.errors import ParameterError

__all__ = ["factors_figure"]

_LARGEST = 16_000_000  # entries of a picture


def factors_figure(
    left: Any, right: Any, *, names: tuple[str, str], title: str, weights: tuple[Any, Any] | None = None
) -> Any:
    """Return a figure of two factors as heat maps, zero white, red above and blue below it.

    Args:
        left: shape (n, r).
        right: shape (r, n).
        names: of the two factors.
        title: above both.
        weights: w and v of a stage, shape (n,) each, to be drawn below.

    Raises:
        MissingExtraError: matplotlib is not installed.
        ParameterError: matrices too large for a picture.
    """
    n, r = left.shape
    if n * r > _LARGEST:
        raise ParameterError(
            f"factors of {n} x {r} entries are too large for a picture: choose a smaller horizon"
        )
    if weights is None:
        figure = new_figure(11.0, 5.6)
        axes = figure.subplots(1, 2)
    else:
        figure = new_figure(11.0, 7.4)
        grid = figure.add_gridspec(2, 2, height_ratios=(3, 1))
        axes = [figure.add_subplot(grid[0, column]) for column in (0, 1)]
        _weights(figure.add_subplot(grid[1, :]), weights)
    for axis, matrix, name in zip(axes, (left, right), names, strict=True):
        _heat_map(figure, axis, matrix, name)
    axes[0].set(xlabel="measurement", ylabel="released step")
    axes[1].set(xlabel="input step", ylabel="measurement")
    figure.suptitle(title)
    return figure


def _weights(axis: Any, weights: tuple[Any, Any]) -> None:
    for name, values, colour in zip(("w", "v"), weights, ("#30638e", "#d1495b"), strict=True):
        steps = np.arange(1, len(values) + 1)
        axis.step(steps, values, where="mid", color=colour, label=name)
    axis.set(xlabel="step of the block", ylabel="weight", ylim=(-0.02, 1.02))
    axis.set_title(
        "w: how much of a query goes up to this block's end; v: how much of an input goes to the next block"
    )
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.legend(frameon=False)


def _heat_map(figure: Any, axis: Any, matrix: Any, name: str) -> None:
    largest = float(np.abs(matrix).max()) or 1.0
    # a signed square root: entries span orders of magnitude, and the small ones carry the pattern
    shown = np.sign(matrix) * np.sqrt(np.abs(matrix) / largest)
    rows, columns = matrix.shape
    # pixels of a plain array would hide thin structures in large matrices, so let them be averaged
    image = axis.imshow(
        shown,
        cmap="RdBu_r",
        vmin=-1.0,
        vmax=1.0,
        aspect="auto",
        interpolation="nearest" if max(rows, columns) <= 300 else "antialiased",
        extent=(0.5, columns + 0.5, rows + 0.5, 0.5),
    )
    for side in (axis.xaxis, axis.yaxis):
        side.get_major_locator().set_params(integer=True)
    axis.set_title(f"{name}  ({rows} x {columns}, {np.mean(matrix != 0):.0%} nonzero)", fontsize=11)
    bar = figure.colorbar(image, ax=axis, shrink=0.9, ticks=[-1.0, -0.5, 0.0, 0.5, 1.0])
    bar.ax.set_yticklabels([f"{sign * mark * mark * largest:.2g}" for mark, sign in _MARKS])


_MARKS = [(1.0, -1), (0.5, -1), (0.0, 1), (0.5, 1), (1.0, 1)]
