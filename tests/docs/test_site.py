"""The site is built strictly, once, and its pages load nothing from elsewhere."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("mkdocs", "material", "mkdocstrings", "latex2mathml")

LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}
HARMLESS_LINKS = {"canonical", "next", "prev", "alternate"}


class Loads(HTMLParser):
    """Collects what a page makes a browser load, and which formulas it holds."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.formulas = 0
        self.classes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        target = values.get(LOADING.get(tag, ""))
        if target and not (tag == "link" and values.get("rel") in HARMLESS_LINKS):
            self.loads.append(target)
        if tag == "a" and values.get("href"):
            self.links.append(str(values["href"]))
        self.formulas += tag == "math"
        self.classes |= set((values.get("class") or "").split())


def read(path: Path) -> Loads:
    page = Loads()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def loads_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    seen = 0
    for path in pages:
        page = read(path)
        assert not page.classes & {"mermaid"}, path  # the theme would fetch a library for it
        for target in page.loads:
            parts = urlsplit(target)
            assert parts.scheme in ("", "data"), f"{path.name}: {target}"
            assert not parts.netloc, f"{path.name}: {target}"
            seen += 1
        styles = re.findall(r"url\(\s*['\"]?([^'\")]+)", path.read_text(encoding="utf-8"))
        assert all(style.startswith("data:") for style in styles), path
    assert seen > 100
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r"url\(\s*['\"]?(?:https?:)?//", text), path
        assert "@import" not in text, path


def what_pages_load_is_there(site: Path) -> None:
    for path in site.rglob("*.html"):
        if path.name == "404.html":
            continue  # served from anywhere, so that its paths are absolute
        for target in read(path).loads:
            name = unquote(urlsplit(target).path)
            assert not name or (path.parent / name).exists(), f"{path.name}: {target}"


def formulas_are_mathml(site: Path) -> None:
    text = (site / "theory-bridge.html").read_text(encoding="utf-8")
    page = read(site / "theory-bridge.html")
    assert page.formulas > 50
    assert "arithmatex" not in page.classes
    assert r"\(" not in text
    assert r"\[" not in text


def the_reference_is_made_of_the_docstrings(site: Path) -> None:
    text = (site / "reference" / "counters.html").read_text(encoding="utf-8")
    for words in ('id="trilift.counters.Counter"', "range_sd", "privacy_statement"):
        assert words in text
    assert ":class:" not in text
    assert ":mod:" not in text


@pytest.mark.slow
def test_the_site(tmp_path: Path) -> None:
    """One test, so that several processes do not each build the site."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        pytest.skip(f"the extra docs is not installed ({', '.join(missing)})")
    command = [
        sys.executable,
        "-P",
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--site-dir",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    loads_nothing_from_elsewhere(tmp_path)
    what_pages_load_is_there(tmp_path)
    formulas_are_mathml(tmp_path)
    the_reference_is_made_of_the_docstrings(tmp_path)
