"""Reports of artifacts and plans: one file each, that loads nothing and says what the commands say."""

import functools
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from trilift.artifacts import find, save
from trilift.commands import plan
from trilift.html_report import HtmlReport

Run = Callable[..., Any]

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True, scope="module")
def one_catalogue() -> Iterator[None]:
    """Load the shipped artifacts once, not for every command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "catalogued", functools.cache(plan.catalogued))
        yield


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
REPORTS: list[tuple[str, tuple[object, ...], list[str]]] = [
    ("stage", ("inspect", "stage-max-9"), ["What is certified", "Norms, step by step", "How it was found"]),
    ("direct", ("inspect", "direct-max-8"), ["What is certified", "Factors"]),
    ("chain", ("plan", "-n", 500, "-e", 1), ["How precise it is", "Levels, finest first", "kary-averaged"]),
    ("tree", ("plan", "-n", 500, "-e", 1, "--mechanism", "kary", "--arity", 5), ["What kary costs"]),
    ("paper", ("plan", "-n", 500, "-e", 1, "--mechanism", "paper"), ["at most"]),
    ("gaussian", ("plan", "-n", 500, "-e", 1, "--delta", "1e-6"), ["Gaussian noise", "toeplitz"]),
    ("edit", ("plan", "-n", 500, "-e", 1, "--delta", "1e-6", "--neighbours", "edit"), ["Where its budget"]),
]  # fmt: skip


class Page(HTMLParser):
    """What is in a page: its tags, what they point to, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.targets: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.targets += [value or "" for name, value in attrs if name in {"src", "href", "data", "action"}]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.mark.parametrize(("name", "arguments", "words"), REPORTS, ids=[name for name, _, _ in REPORTS])
def test_a_report(run: Run, kept: Path, name: str, arguments: tuple[object, ...], words: list[str]) -> None:
    done = run(*arguments, "--html", "r.html")
    assert (done.code, done.err) == (0, "Written: r.html\n")
    if name in {"stage", "direct", "gaussian"}:  # the others take longer
        assert done.out == run(*arguments).out
    text = Path("r.html").read_text(encoding="utf-8")
    page = Page(text)
    assert all(word in " ".join(page.words) for word in words)
    assert page.targets
    assert all(target.startswith("data:image/svg+xml;base64,") for target in page.targets)
    assert not {"script", "link", "iframe", "object", "form"} & set(page.tags)
    assert "default-src 'none'" in text
    assert not re.search(r"https?://", re.sub(r'src="data:[^"]*"', "", text))
    figures = re.findall(r"(?:sd of|sd) ([0-9.]+)", done.out)
    assert all(figure in text for figure in figures[:1])
    (kept / f"{name}.html").write_text(text, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed here")
def test_a_browser_shows_it(kept: Path, tmp_path: Path) -> None:
    """The pictures are drawn, and the policy stops nothing that is meant to be seen."""
    page = kept / "stage.html"
    if not page.exists():
        pytest.skip("test_a_report makes the page, and was not run here")
    probe = tmp_path / "probe.html"
    text = page.read_text(encoding="utf-8").replace("default-src 'none'", "script-src 'unsafe-inline'")
    script = (
        "<script>addEventListener('load', () => {"
        "document.title = [...document.images].map(i => i.complete && i.naturalWidth > 99).join()"
        "})</script>"
    )
    probe.write_text(text.replace("</body>", f"{script}</body>"), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command = [str(CHROMIUM), *options, "--virtual-time-budget=4000", "--dump-dom", probe.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    assert "<title>true,true</title>" in done.stdout
    assert "stage-max-9" in done.stdout


def test_what_is_not_proved_is_not_claimed(run: Run) -> None:
    artifact = find("stage-mean-9")
    low = replace(artifact.certificate, kappa_mean=artifact.certificate.kappa_mean / 2)
    save(replace(artifact, certificate=low), "false.npz")
    assert run("inspect", "false.npz", "--html", "r.html").code == 0
    text = Path("r.html").read_text(encoding="utf-8")
    assert "NOT verified: kappa_mean" in text
    assert "What is certified" not in text


def test_texts_are_escaped() -> None:
    evil = '<script>alert(1)</script>&"'
    report = HtmlReport(evil, evil, alarm=evil)
    report.heading(evil)
    report.code(evil)
    report.pairs({evil: evil})
    report.table([evil], [[evil]])
    page = report.page()
    assert "<script>" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;") == 10


def test_nothing_is_written_over(refused: Callable[..., str]) -> None:
    Path("r.html").write_text("mine")
    for command in (("inspect", "direct-max-8"), ("plan", "-n", 10, "-e", 1)):
        assert "exists already" in refused(*command, "--html", "r.html")
    assert Path("r.html").read_text() == "mine"
    assert "does not exist" in refused("plan", "-n", 10, "-e", 1, "--html", "nowhere/r.html")
