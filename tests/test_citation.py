"""CITATION.cff is a valid file of the Citation File Format 1.2, about this version."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def fields(text: str) -> dict[str, str]:
    """The fields of the top level, with their indented lines: all that the file uses of YAML."""
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if match := re.fullmatch(r"([a-z-]+):(?: (.*))?", line):
            name = match[1]
            assert name not in found, name
            found[name] = match[2] or ""
        else:
            assert line.startswith("  "), line
            found[name] += "\n" + line
    return {name: value.strip().strip('"') for name, value in found.items()}


def test_it_has_what_the_format_asks_for() -> None:
    found = fields(TEXT)
    assert {"cff-version", "message", "title", "authors"} <= set(found)  # the required ones
    known = {
        "cff-version",
        "message",
        "title",
        "abstract",
        "type",
        "version",
        "license",
        "authors",
        "keywords",
    }
    assert set(found) <= known
    assert found["cff-version"] == "1.2.0"
    assert found["type"] in {"software", "dataset"}
    assert re.match(r'- name: "', found["authors"])


def test_it_is_about_this_project() -> None:
    found = fields(TEXT)
    assert found["version"] == PROJECT["version"]
    assert found["license"] == PROJECT["license"]
    assert PROJECT["authors"] == [{"name": found["authors"].removeprefix("- name: ").strip('"')}]
    assert found["title"].startswith("trilift: ")


@pytest.mark.parametrize("line", ["title: again", "unindented"])
def test_broken_files_are_seen(line: str) -> None:
    with pytest.raises(AssertionError):
        fields(f"{TEXT}{line}\n")


def test_yaml_reads_the_same() -> None:
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(TEXT)
    assert set(found) == set(fields(TEXT))
    assert found["authors"] == PROJECT["authors"]
