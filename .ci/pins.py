#!/usr/bin/env python3
"""Name this kind of machine and Python, or turn a report of pip's resolver into pinned requirements.

python .ci/pins.py               # linux-x86_64-3.11
python .ci/pins.py REPORT.json   # the lines of a requirements file, with hashes and without hosts
"""

import json
import re
import sys
import sysconfig
from pathlib import Path


def platform() -> str:
    """Return the name of the file of pins for the running Python."""
    return f"{sysconfig.get_platform()}-{sys.version_info.major}.{sys.version_info.minor}"


def lines(report: dict) -> list[str]:
    """Return a pinned requirement for everything that was resolved, but for what is built here."""
    found = {}
    for item in report["install"]:
        source, about = item["download_info"], item["metadata"]
        name = re.sub(r"[-_.]+", "-", about["name"]).lower()
        if name == "trilift":
            continue
        digest = source["archive_info"]["hashes"]["sha256"]
        found[name] = f"{name}=={about['version']} --hash=sha256:{digest}"
    return [found[name] for name in sorted(found)]


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(platform())
    else:
        print(f"# For {platform()}. Made by .ci/pin, used by .ci/run; what users get is in pyproject.toml.")
        print("\n".join(lines(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))))
