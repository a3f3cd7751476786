"""Heat maps of factors, with matplotlib (extra ``plot``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from trilift.experiments.figures import new_figure, save_png
from trilift.lift.errors import ParameterError

__all__ = ["draw_factors"]

_LARGEST = 16_000_000  # entries of a picture


def draw_factors(left: Any, right: Any, path: Path, *, names: tuple[str, str], title: str) -> None:
    """Draw two factors as heat maps, zero white, red above and blue below it.

    Args:
        left: shape (n, r).
        right: shape (r, n).
        path: the PNG file to write.
        names: of the two factors.
        title: above both.

    Raises:
        MissingExtraError: matplotlib is not installed.
        ParameterError: a path that does not end in .png, or matrices too large for a picture.
    """
    n, r = left.shape
    if n * r > _LARGEST:
        raise ParameterError(
            f"factors of {n} x {r} entries are too large for a picture: choose a smaller horizon"
        )
    figure = new_figure(11.0, 5.6)
    axes = figure.subplots(1, 2)
    for axis, matrix, name in zip(axes, (left, right), names, strict=True):
        _heat_map(figure, axis, matrix, name)
    axes[0].set(xlabel="measurement", ylabel="released step")
    axes[1].set(xlabel="input step", ylabel="measurement")
    figure.suptitle(title)
    save_png(figure, path)


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
