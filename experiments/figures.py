"""What every picture needs: matplotlib (extra ``plot``), loaded late and without a window system."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from trilift.lift.errors import MissingExtraError, ParameterError

__all__ = ["new_figure", "save_png"]


def new_figure(width: float, height: float) -> Any:
    """Return an empty matplotlib Figure of this size in inches.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        figure_class = import_module("matplotlib.figure").Figure
    except ImportError:
        raise MissingExtraError("a picture needs matplotlib: pip install 'trilift[plot]'") from None
    return figure_class(figsize=(width, height), layout="constrained")


def save_png(figure: Any, path: Path) -> None:
    """Write a figure to a PNG file.

    Raises:
        ParameterError: a path that does not end in .png.
        OSError: the file cannot be written.
    """
    if path.suffix.lower() != ".png":
        raise ParameterError(f"a picture must be a .png file, got {path}")
    figure.savefig(path, dpi=150, format="png")
