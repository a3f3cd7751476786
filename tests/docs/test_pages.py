"""The pages of the site: their examples and commands are run, and their links lead somewhere."""

import doctest
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from trilift.cli import main
from trilift.commands import plan

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
NEW = ["index", "start", "tutorial-flights", "choosing", "gpu", "theory-bridge"]
"""Pages whose examples nobody else runs."""


@pytest.fixture(autouse=True, scope="module")
def one_catalogue() -> Iterator[None]:
    """Load the shipped artifacts once, not for every command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "catalogued", functools.cache(plan.catalogued))
        yield


FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    return [body for name, body in FENCE.findall(text) if name == language]


@pytest.mark.parametrize("page", NEW)
def test_the_examples_run(page: str) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    result = doctest.testfile(str(DOCS / f"{page}.md"), module_relative=False, encoding="utf-8")
    assert result.failed == 0
    assert result.attempted == text.count(">>> ")
    assert result.attempted > 0 or page in {"start", "choosing"}


def commands(page: str) -> Iterator[tuple[str, str]]:
    """Every command of the page's console blocks, with what it is said to print."""
    for body in blocks(page, "console"):
        for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
            command, _, printed = part.partition("\n")
            yield command, printed


def run(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command; trilift itself in this process, which has loaded everything."""
    import shlex

    if command.startswith("trilift "):
        capsys.readouterr()
        assert main(shlex.split(command)[1:]) == 0, command
        captured = capsys.readouterr()
        return captured.err + captured.out
    command = re.sub(r"^python ", f"{shlex.quote(sys.executable)} ", command)
    done = subprocess.run(command, shell=True, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("page", ["start", "choosing"])
def test_the_commands_print_what_the_page_says(
    page: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    found = list(commands(page))
    assert found
    checker = doctest.OutputChecker()
    for command, said in found:
        printed = run(command, capsys)
        assert checker.check_output(said, printed, doctest.ELLIPSIS), f"$ {command}\n{printed}"


@pytest.fixture(scope="module")
def nav() -> list[str]:
    """Read the navigation without a reader of YAML, which the tests have no other need of."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    return re.findall(r"(\S+\.md)$", text.split("\nnav:\n")[1], re.M)


def test_every_page_is_in_the_navigation_once(nav: list[str]) -> None:
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    outside = {"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
    assert len(nav) == len(set(nav))
    assert set(nav) == pages | outside
    assert all((ROOT / name).is_file() for name in outside)


LINK = re.compile(r"!?\[[^\]]*\]\(\s*([^)\s]+)\s*\)")


def anchors(path: Path) -> set[str]:
    """What headings can be linked by."""
    titles = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.M)
    plain = (re.sub(r"[^\w\s-]", "", title).strip().lower() for title in titles)
    return {re.sub(r"[-\s]+", "-", title) for title in plain}


def test_links_lead_somewhere() -> None:
    paths = [*DOCS.rglob("*.md"), ROOT / "README.md"]
    checked = 0
    for path in paths:
        text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target in LINK.findall(text):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            there = path if not name else (path.parent / name).resolve()
            if not there.exists() and there.parent == DOCS:
                there = ROOT / there.name  # a page that the site takes from the root of the repository
            assert there.exists(), f"{path.relative_to(ROOT)}: {target}"
            assert not anchor or anchor in anchors(there), f"{path.relative_to(ROOT)}: {target}"
            checked += 1
    assert checked > 60


@pytest.mark.parametrize("page", ["counters", "factorisations", "noise", "errors"])
def test_the_reference_names_what_there_is(page: str) -> None:
    import importlib

    text = (DOCS / "reference" / f"{page}.md").read_text(encoding="utf-8")
    names = re.findall(r"^::: (\S+)$", text, re.M)
    assert names
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert getattr(importlib.import_module(module), attribute).__doc__, name


def test_every_public_name_is_in_the_reference() -> None:
    import trilift

    text = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md"))
    listed = {name.rpartition(".")[2] for name in re.findall(r"^::: (\S+)$", text, re.M)}
    errors = {name for name in trilift.__all__ if name.endswith("Error")}
    assert set(trilift.__all__) - listed - errors == {"__version__"}


def test_formulas_are_closed() -> None:
    text = (DOCS / "theory-bridge.md").read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    assert prose.count(r"\(") == prose.count(r"\)") > 50
    assert len(re.findall(r"^\\\[ ", prose, re.M)) == len(re.findall(r" \\\]$", prose, re.M)) == 6
