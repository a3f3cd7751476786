"""What the site needs beyond its pages: mathematics as MathML, pages that lie outside docs, links out of it.

MkDocs loads this file (``hooks`` in mkdocs.yml); it is no part of the package, and not of the site.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""Pages at the root of the repository that the site has too."""

_MATHS = re.compile(
    r'<(span|div) class="arithmatex">\s*\\([(\[])(.*?)\\[)\]]\s*</\1>',
    re.DOTALL,
)
_ROLE = re.compile(r":(?:mod|class|meth|func|data|attr|exc):<code>~?([^<]+)</code>")
_LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages at the root of the repository."""
    for name in OUTSIDE:
        files.append(File.generated(config, name, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links to the repository's files into what the site has: its pages, or the bare name."""
    name = page.file.src_uri

    def moved(match: re.Match[str]) -> str:
        target, anchor = match[1], match[2] or ""
        if name in OUTSIDE:
            inside = target.removeprefix("docs/")
        elif target.startswith("../") and "/" not in name:
            inside = target.removeprefix("../")
        else:
            return match[0]
        return f"]({inside}{anchor})"

    return _LINK.sub(moved, markdown)


def on_page_content(content: str, page: Any, config: Any, files: Files) -> str:
    """Write formulas as MathML, which browsers draw themselves, and names in docstrings without roles."""
    return _ROLE.sub(r"<code>\1</code>", _MATHS.sub(_mathml, content))


def _mathml(match: re.Match[str]) -> str:
    display = "block" if match[2] == "[" else "inline"
    return convert(html.unescape(match[3]).strip(), display=display)
