"""A report as one HTML file that loads nothing: tables and pictures lie within it."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trilift import __version__

__all__ = ["HtmlReport"]

_STYLE = """
:root { color-scheme: light dark; --line: #8885; --dim: #777; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .8rem .25rem 0; text-align: right; }
th:first-child, td:first-child, table.pairs td { text-align: left; }
table.pairs td { overflow-wrap: anywhere; }
table.pairs th { text-align: left; font-weight: normal; color: var(--dim); }
table.pairs th { white-space: nowrap; vertical-align: top; }
img { max-width: 100%; background: #fff; border-radius: 4px; }
figure { margin: 1rem 0; } figcaption, footer { color: var(--dim); font-size: .9rem; }
pre { background: #8882; padding: .6rem; white-space: pre-wrap; border-radius: 4px; }
.bad { color: #b00020; font-weight: bold; }
"""
# Even if a text went astray, a browser would load nothing and run nothing.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


class HtmlReport:
    """A report that is put together piece by piece; every text is escaped.

    Args:
        title: heading and name of the window.
        lead: sentences below it.
        alarm: what is wrong, shown in red, or None.
    """

    def __init__(self, title: str, lead: str = "", *, alarm: str | None = None) -> None:
        self._title = title
        self._parts = [f"<h1>{_text(title)}</h1>"]
        if alarm is not None:
            self._parts.append(f'<p class="bad">{_text(alarm)}</p>')
        if lead:
            self.text(lead)

    def heading(self, text: str) -> None:
        """Begin a section."""
        self._parts.append(f"<h2>{_text(text)}</h2>")

    def text(self, text: str) -> None:
        """Add a paragraph."""
        self._parts.append(f"<p>{_text(text)}</p>")

    def code(self, text: str) -> None:
        """Add a command."""
        self._parts.append(f"<pre><code>{_text(text)}</code></pre>")

    def pairs(self, pairs: Mapping[str, str]) -> None:
        """Add names and values, one pair a line."""
        rows = "".join(
            f'<tr><th scope="row">{_text(name)}</th><td>{_text(value)}</td></tr>'
            for name, value in pairs.items()
        )
        self._parts.append(f'<div class="wide"><table class="pairs"><tbody>{rows}</tbody></table></div>')

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Add a table under a header."""
        head = "".join(f'<th scope="col">{_text(name)}</th>' for name in columns)
        body = "".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        self._parts.append(f'<div class="wide">{table}</div>')

    def figure(self, figure: Any, *, caption: str) -> None:
        """Add a matplotlib figure as an SVG within the file; the caption is its text alternative too."""
        from matplotlib import rc_context

        buffer = io.BytesIO()
        with rc_context({"svg.hashsalt": "trilift"}):
            figure.savefig(buffer, format="svg", metadata={"Date": None})
        data = base64.b64encode(buffer.getvalue()).decode("ascii")
        image = f'<img alt="{_text(caption)}" src="data:image/svg+xml;base64,{data}">'
        self._parts.append(f"<figure>{image}<figcaption>{_text(caption)}</figcaption></figure>")

    def page(self) -> str:
        """Return the whole file."""
        head = (
            '<meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
            f"<title>{_text(self._title)}</title><style>{_STYLE}</style>"
        )
        foot = f"<footer>trilift {_text(__version__)}</footer>"
        body = "\n".join([*self._parts, foot])
        return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'

    def write(self, path: Path) -> None:
        """Write the report into a new file.

        Raises:
            OSError: it exists, or cannot be written.
        """
        with open(path, "x", encoding="utf-8", newline="\n") as file:
            file.write(self.page())


def _text(text: str) -> str:
    return html.escape(text, quote=True)
