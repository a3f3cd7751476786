"""The page docs/trust.md, from results that are kept in docs/measurements.

    trilift reproduce trust --full --out docs              # measure everything, then write the page
    trilift reproduce trust --part soak --full --out docs  # one part again
    python -m trilift.experiments.trust.page --out docs    # the page alone, from what is kept

Tests compare the page with what this makes, and run every part again, small.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trilift.experiments.edit.unreproduced import fill
from trilift.experiments.trust.parts import PARTS, failures, kept_file, load_result

__all__ = ["TITLES", "page", "write_page"]

TITLES = {
    "faults": "Planted faults",
    "audits": "What mechanisms spend",
    "kills": "Kill points",
    "inputs": "Hostile and clumsy input",
    "files": "Files",
    "fuzz": "Fuzzing and state machines",
    "samplers": "Samplers at the edges",
    "soak": "Soak",
    "supply": "Supply chain",
}

_ABOUT = {
    "faults": """Faults were planted into mechanisms, and the audit must call each of them a
        violation. A case holds if it was caught.""",
    "audits": """The same audit of the shipped mechanisms. A case holds if the lower confidence bound
        on the epsilon that is really spent does not exceed the claim. That proves
        nothing by itself; the proofs are in [privacy.md](privacy.md). Where the bound is
        0, so few runs saw nothing: neither for the claim nor against it.""",
    "kills": """A process that counts was killed with SIGKILL, and the counter opened again. A case
        holds if no step that was seen is lost, and nothing is drawn anew: the
        released values are byte for byte those of an undisturbed run.""",
    "inputs": """Parameters, streams and texts that are wrong or look wrong. A case holds if it is
        handled as it must be: refused in one line that says what was wrong, with
        nothing changed, or accepted for exactly what it is.""",
    "files": """Damaged, foreign and hostile artifacts and states. A case holds if the file is
        refused with one line, in bounded time and memory.""",
    "fuzz": """Random inputs and random orders of operations. A case holds if nothing went wrong
        but in the ways that are documented.""",
    "samplers": """Noise at scales and budgets far from the usual, with stuck random bits, and in
        forked processes and threads. A case holds if the noise is exactly what was
        asked for, or is refused by name.""",
    "soak": """A chain counter over very many steps. A case holds if memory stays flat and a
        release at a random step is exactly the one that integers, evaluated
        directly at that step alone, give.""",
    "supply": """What is shipped, and what it is made from. A case holds if it is as it was recorded.""",
}

_INTRODUCTION = """\
What was tried against trilift, and how often it did what it should. Proofs are not here but in
[privacy.md](privacy.md), and what is protected from whom is in [SECURITY.md](../SECURITY.md). A number
below says that so many cases were tried, not that there are no others.

All of it is measured by `trilift reproduce trust --full --out docs`, one part by adding `--part NAME`;
results are kept in [measurements](measurements/README.md), and this page is made from them. Tests compare
the page with what that command makes, and run every part again in a small version, in which everything
must hold too."""


def page(measurements: Path) -> str:
    """Return the text of the page.

    Raises:
        ParameterError: the result of a part is not there.
        ArtifactFormatError: one is damaged.
    """
    kept = [part for part in PARTS if kept_file(part, measurements=measurements).is_file()]
    results = [load_result(part, measurements=measurements) for part in kept]
    blocks = ["# Trust", *map(fill, _INTRODUCTION.split("\n\n")), _summary(results)]
    failed = [line for result in results for line in failures(result)]
    if failed:
        blocks += [f"**Not everything held.** {len(failed)} rows:", "\n".join(f"- {line}" for line in failed)]
    for result in results:
        blocks += _section(result)
    return "\n\n".join(blocks) + "\n"


def _summary(results: Sequence[dict[str, Any]]) -> str:
    rows = [
        [f"[{TITLES[r['part']]}](#{_anchor(r['part'])})", _sum(r, "tried"), _sum(r, "held")] for r in results
    ]
    return _table(["part", "tried", "held"], rows, left=1)


def _sum(result: dict[str, Any], key: str) -> str:
    return _count(sum(row[key] for row in result["rows"]))


def _anchor(part: str) -> str:
    return TITLES[part].lower().replace(" ", "-")


def _section(result: dict[str, Any]) -> list[str]:
    part, extra = result["part"], result.get("columns", {})
    version = " --full" if result["full"] else ""
    scaled = "" if result["full"] else " **This is the small version.**"
    rows = [
        [
            row["what"],
            _count(row["tried"]),
            _count(row["held"]),
            *[_cell(row[k]) for k in extra],
            row["detail"],
        ]
        for row in result["rows"]
    ]
    columns = ["what", "tried", "held", *extra.values(), "detail"]
    if not any(row["detail"] for row in result["rows"]):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    note = [fill(result["note"])] if result["note"] else []
    return [
        f"## {TITLES[part]}",
        fill(_ABOUT[part]),
        f"    trilift reproduce trust --part {part}{version} --out docs",
        *([scaled.strip()] if scaled else []),
        *note,
        _table(columns, rows, left=1),
    ]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> str:
    """Return a table in Markdown; the columns from ``left`` on are flush right, but for the detail."""
    rules = ["---" if i < left or name == "detail" else "---:" for i, name in enumerate(columns)]
    lines = [columns, rules, *[[cell.replace("|", "\\|") for cell in row] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _count(value: int) -> str:
    return f"{value:,}"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def write_page(out: Path) -> Path:
    """Write trust.md into a folder that has measurements/, and return its path.

    Raises:
        ParameterError: the result of a part is not there.
        ArtifactFormatError: one is damaged.
        OSError: the page cannot be written.
    """
    path = out / "trust.md"
    path.write_text(page(out / "measurements"), encoding="utf-8")
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page from the results that are kept."""
    parser = argparse.ArgumentParser(
        description="Write trust.md from the results in its folder measurements."
    )
    parser.add_argument("--out", type=Path, required=True, help="the folder docs")
    print(write_page(parser.parse_args(arguments).out))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
