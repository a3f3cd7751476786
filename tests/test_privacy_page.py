"""docs/privacy.md covers every mechanism that there is, and names nothing that there is not."""

import doctest
import importlib
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import trilift

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "privacy.md"
SECURITY = ROOT / "SECURITY.md"
TOOLS: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "setuptools"
]
ROOMS = ("trilift.stream", "trilift.counters")
PARTS = {"Linear", "Hybrid", "Reduction", "SVT"}  # of counters, whose ledgers pay for them
AROUND = {"DurableCounter"}  # what is promised is what the counter within promises
TOKEN = re.compile(r"`(trilift(?:\.\w+)+)`")


def classes() -> set[type[Any]]:
    """Every class that a module of the counters or of the noise defines."""
    found: set[type[Any]] = set()
    for package in TOOLS["packages"]:
        room = max((top for top in TOOLS["package-dir"] if f"{package}.".startswith(f"{top}.")), key=len)
        if room not in ROOMS:
            continue
        folder = ROOT.joinpath(TOOLS["package-dir"][room], *package.removeprefix(room).split("."))
        for path in sorted(folder.glob("[!_]*.py")):
            module = importlib.import_module(f"{package}.{path.stem}")
            found |= {
                kind
                for kind in vars(module).values()
                if inspect.isclass(kind) and kind.__module__ == module.__name__
            }
    return found


@pytest.fixture(scope="module")
def known() -> set[type[Any]]:
    return classes()


def public_name(kind: type[Any]) -> bool:
    return not kind.__name__.startswith("_")


def bases(known: set[type[Any]]) -> set[type[Any]]:
    return {base for kind in known for base in kind.__mro__[1:]}


def counters(known: set[type[Any]]) -> set[str]:
    """Classes that state a guarantee and that nothing is derived from: what users make."""
    return {
        kind.__name__
        for kind in known - bases(known)
        if public_name(kind) and callable(getattr(kind, "privacy_statement", None))
    } - AROUND


def processes(known: set[type[Any]]) -> set[str]:
    """Other classes whose docstrings promise privacy to neighbours."""
    return (
        {
            kind.__name__
            for kind in known - bases(known)
            if public_name(kind)
            and re.search(r"^Neighbours", inspect.getdoc(kind) or "", re.MULTILINE)
            and not hasattr(kind, "privacy_statement")
        }
        - PARTS
        - AROUND
    )


def rows(section: str) -> dict[str, list[str]]:
    """The rows of the table of a section, by the class in their first cell."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "|" in line
    ]
    return {row[0].strip("`"): row for row in cells if row[0].startswith("`")}


def test_every_counter_has_a_row(known: set[type[Any]]) -> None:
    wanted = counters(known)
    assert {"Counter", "SimECC", "PartitionCC", "DistinctCounter"} <= wanted
    assert set(rows("The counters")) == wanted


def test_every_public_counter_has_a_row() -> None:
    """What the front offers, whatever the modules are called."""
    offered = {
        name
        for name in trilift.__all__
        if inspect.isclass(getattr(trilift, name)) and hasattr(getattr(trilift, name), "privacy_statement")
    }
    assert len(offered) >= 11
    assert offered <= set(rows("The counters"))


def test_every_noise_process_has_a_row(known: set[type[Any]]) -> None:
    wanted = processes(known)
    assert {"Noise", "GaussianNoise", "EpochNoise"} <= wanted
    assert wanted <= set(rows("The noise processes"))


@pytest.mark.parametrize("section", ["The counters", "The noise processes"])
def test_rows_name_what_exists(section: str, known: set[type[Any]]) -> None:
    homes = {kind.__name__: kind.__module__ for kind in known if public_name(kind)}
    for name, row in rows(section).items():
        assert all(row), name
        assert name in homes, name
        assert TOKEN.search(row[-1]), f"{name} points at no module"
        if section == "The noise processes":
            assert TOKEN.findall(row[-1]) == [homes[name]]


@pytest.mark.parametrize("page", [PAGE, SECURITY], ids=lambda page: page.name)
def test_names_and_links_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    names = set(TOKEN.findall(text))
    assert page == SECURITY or len(names) > 25
    for name in names:
        importlib.import_module(name)
    links = re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", text)
    assert links
    for target, anchor in links:
        path = (page.parent / target).resolve() if target else page
        assert path.is_file(), target
        if anchor:
            heads = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_every_counter_has_a_section(known: set[type[Any]]) -> None:
    heads = " ".join(re.findall(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    for name in counters(known):
        assert re.search(rf"\b{name}\b", heads), name


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_both_pages_are_linked(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert "(docs/privacy.md)" in text
    assert "(SECURITY.md)" in text


def test_the_examples_run() -> None:
    done = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert done.failed == 0
    assert done.attempted >= 6


def test_supported_version_is_this_one() -> None:
    major, minor, *_ = trilift.__version__.split(".")
    assert f"| {major}.{minor} (the latest) | yes |" in SECURITY.read_text(encoding="utf-8")
