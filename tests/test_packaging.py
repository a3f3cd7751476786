"""The wheel carries all of trilift and nothing else, and the tests meet an installed copy."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
import trilift
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TOOLS = PROJECT["tool"]["setuptools"]
FOLDERS: dict[str, str] = TOOLS["package-dir"]
NOT_PACKAGED = {"tests", "docs", "build", "dist", "runs", "demo-output"}


def package_of(folder: Path) -> str:
    """The import name that pyproject's table gives to a folder of the checkout (nested ones too)."""
    room, *rest = folder.relative_to(ROOT).parts
    (top,) = [name for name, where in FOLDERS.items() if where == room]
    return ".".join([top, *rest])


def packages_on_disk() -> dict[str, Path]:
    rooms = [path for path in ROOT.iterdir() if path.is_dir() and path.name not in NOT_PACKAGED]
    return {
        package_of(init.parent): init.parent
        for room in rooms
        if not room.name.startswith(".")
        for init in room.rglob("__init__.py")
    }


def test_pyproject_lists_every_package_on_disk() -> None:
    assert sorted(TOOLS["packages"]) == sorted(packages_on_disk())


def test_every_room_has_its_own_import_name() -> None:
    assert set(FOLDERS) <= set(TOOLS["packages"])
    assert len(set(FOLDERS.values())) == len(FOLDERS)
    assert "trilift" not in FOLDERS.values(), "a root folder called trilift would hide the installed one"


def test_no_module_is_orphaned() -> None:
    """A .py file in a folder without __init__.py would silently stay out of the wheel."""
    known = set(packages_on_disk().values())
    for folder in FOLDERS.values():
        for module in (ROOT / folder).rglob("*.py"):
            assert module.parent in known, module


@pytest.mark.skipif("TRILIFT_EXPECT_INSTALLED" not in os.environ, reason="only promised by make test and CI")
def test_the_tests_meet_the_installed_copy() -> None:
    installed = Path(sysconfig.get_path("purelib")).resolve()
    origin = Path(str(trilift.__file__)).resolve()
    assert origin.is_relative_to(installed), origin
    assert not any(Path(entry or os.curdir).resolve() == ROOT for entry in sys.path)


@pytest.mark.skipif("TRILIFT_EXPECT_INSTALLED" not in os.environ, reason="only promised by make test and CI")
def test_the_installed_copy_is_the_checkout() -> None:
    home = Path(str(trilift.__file__)).parent
    for name, folder in FOLDERS.items():
        for source in (ROOT / folder).rglob("*.py"):
            copy = home.joinpath(*name.split(".")[1:], *source.relative_to(ROOT / folder).parts)
            assert copy.read_bytes() == source.read_bytes(), source


def test_version_and_command() -> None:
    assert metadata.version("trilift") == PROJECT["project"]["version"]
    (command,) = metadata.entry_points(group="console_scripts", name="trilift")
    assert command.value == "trilift.cli:main"


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Names in a wheel built from a copy of the checkout, with the build tools at hand (no network)."""
    work = tmp_path_factory.mktemp("wheel")
    copy = work / "copy"
    leave_out = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__", *(NOT_PACKAGED - {"docs"}))
    shutil.copytree(ROOT, copy, ignore=leave_out)
    # A wheel that picks up strays would carry these.
    (copy / "lift" / "stray.pyc").write_bytes(b"")
    (copy / "artifacts" / "stray.txt").write_text("")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(work), str(copy)], check=True, capture_output=True)
    (wheel,) = work.glob("trilift-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.mark.slow
def test_wheel_holds_only_trilift(wheel_names: list[str]) -> None:
    version = PROJECT["project"]["version"]
    assert {name.split("/")[0] for name in wheel_names} == {"trilift", f"trilift-{version}.dist-info"}
    assert not [name for name in wheel_names if "stray" in name]
    suffixes = {Path(name).suffix for name in wheel_names if name.startswith("trilift/")}
    assert suffixes <= {".py", ".typed", ".npz", ".json", ""}
    assert [name for name in wheel_names if name.startswith("trilift/") and not Path(name).suffix] == [
        "trilift/artifacts/SHA256SUMS"
    ]


@pytest.mark.slow
def test_wheel_holds_all_of_trilift(wheel_names: list[str]) -> None:
    expected = {"trilift/py.typed"}
    for name, folder in FOLDERS.items():
        for pattern in ("*.py", "*.npz", "*.json"):
            for source in (ROOT / folder).rglob(pattern):
                inside = source.relative_to(ROOT / folder).as_posix()
                expected.add(f"{name.replace('.', '/')}/{inside}")
    assert expected <= set(wheel_names), expected - set(wheel_names)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel_names)


PINS = sorted((ROOT / ".ci" / "pins").glob("*.txt"))


@pytest.mark.parametrize("path", PINS, ids=lambda path: str(path.stem))
def test_pins_fit_what_the_project_asks_for(path: Path) -> None:
    """Made again with .ci/pin after a change of the dependencies."""
    comment, *lines = path.read_text(encoding="ascii").splitlines()
    assert comment.startswith(f"# For {path.stem}. ")
    pinned = {}
    for line in lines:  # nothing but names, versions and hashes: no hosts, no options
        found = re.fullmatch(r"([a-z0-9-]+)==(\S+) --hash=sha256:[0-9a-f]{64}", line)
        assert found, line
        pinned[found[1]] = found[2]
    assert lines == sorted(lines, key=lambda line: line.split("==")[0])
    extras, waiting = PROJECT["project"]["optional-dependencies"], ["test", "dev", "docs"]
    asked = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]
    while waiting:
        for need in map(Requirement, extras[waiting.pop()]):
            if need.name == "trilift":
                waiting += need.extras
            else:
                asked.append(str(need))
    for need in map(Requirement, asked):
        version = pinned[re.sub(r"[-_.]+", "-", need.name).lower()]
        assert need.specifier.contains(version, prereleases=True), (need, version)


def test_ci_installs_the_pins_by_hash() -> None:
    assert PINS
    install = (ROOT / ".ci" / "install").read_text(encoding="utf-8")
    assert '--require-hashes --no-deps -r "$3"' in install
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert '"$here/install" "$python" test,dev,docs "$pins"' in run
