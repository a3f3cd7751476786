"""The versions of the packages that a result came from, for its provenance."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

__all__ = ["versions_of"]


def versions_of(*names: str) -> dict[str, str]:
    """Return the installed version of each package by name, "unknown" where there is none.

    >>> versions_of("no such package")
    {'no such package': 'unknown'}
    """
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
