"""What lies in the repository speaks of the project alone, and runs elsewhere."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Written in pieces, so that this file does not hold them.
FORBIDDEN = [
    "/wo" + "rk/",
    "/ho" + "me/",
    "/ro" + "ot/",
    "/opt/" + "wheels",
    "/opt/" + "pypi",
    "iss" + "ue #",
    "py" + "pi.org",
    "files.python" + "hosted",
    "local" + "host",
]

# Words of how a text came about, not of what it is about. Fixtures may live as long as a run of pytest does,
# and Spark has options under such a name.
NOT_OUR_VOICE = [
    r'(?<!scope=")(?<!\.sql\.)\bsess' + r"ions?\b",
    r"\bhelp" + r"ers\b",
    r"\bassist" + r"ants?\b",
    r"\bsub-?ag" + r"ents?\b",
    r"\blanguage mod" + r"els?\b",
    r"\bwork" + r"place\b",
]


def tracked() -> list[Path]:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    done = subprocess.run([git, "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True)
    paths = [ROOT / name for name in done.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


def found(pattern: str) -> dict[str, list[bytes]]:
    """Search every tracked text, and tell where the pattern occurs."""
    expression = re.compile(pattern.encode(), re.IGNORECASE)
    texts = [path for path in tracked() if path.suffix not in {".npz", ".png", ".gz"}]
    assert len(texts) > 10
    hits = {str(path.relative_to(ROOT)): expression.findall(path.read_bytes()) for path in texts}
    return {name: words for name, words in hits.items() if words}


def test_no_machine_path_or_host() -> None:
    assert found("|".join(map(re.escape, FORBIDDEN))) == {}


def test_the_project_speaks_for_itself() -> None:
    assert found("|".join(NOT_OUR_VOICE)) == {}


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("in the last sess" + "ion we", True),
        ("two help" + "ers wrote", True),
        ("as an assist" + "ant", True),
        ('@pytest.fixture(scope="sess' + 'ion")', False),
        ("spark.sql.sess" + "ion.timeZone", False),
        ("obsess" + "ions, possess" + "ion", False),
    ],
)
def test_what_is_not_our_voice(text: str, refused: bool) -> None:
    assert bool(re.search("|".join(NOT_OUR_VOICE), text, re.IGNORECASE)) is refused


def test_nothing_generated_is_tracked() -> None:
    generated = {"__pycache__", ".venv", "build", "dist", ".hypothesis", "demo-output", "runs"}
    for path in tracked():
        parts = path.relative_to(ROOT).parts
        assert not generated & set(parts), path
        assert not any(part.endswith(".egg-info") for part in parts), path


def test_scripts_can_be_run() -> None:
    shells = {"": "bash", ".py": "python3"}
    for path in (ROOT / ".ci").iterdir():
        if path.is_file():
            assert path.stat().st_mode & 0o100, path
            first = f"#!/usr/bin/env {shells[path.suffix]}\n"
            assert path.read_text(encoding="utf-8").startswith(first), path
