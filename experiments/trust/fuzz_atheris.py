"""Fuzzing one target with atheris, guided by coverage: `pip install 'trilift[fuzz]'`, then

    python -m trilift.experiments.trust.fuzz_atheris TARGET CORPUS [OPTIONS OF LIBFUZZER...]

CORPUS is a folder for inputs that reach something new; the target's seeds are put into it. The exit status is
0 where nothing was found; otherwise libFuzzer writes the input down and says where.
"""

from __future__ import annotations

import hashlib
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["main", "plant"]


def plant(seeds: list[bytes], corpus: Path) -> None:
    """Put inputs into a folder, each under its hash."""
    corpus.mkdir(parents=True, exist_ok=True)
    for data in seeds:
        (corpus / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)


def main(arguments: list[str]) -> None:
    """Fuzz; libFuzzer ends the process."""
    atheris: Any = import_module("atheris")  # an extra that the rest does without
    name, corpus, *options = arguments
    with atheris.instrument_imports(include=["trilift", "zipfile", "json", "csv", "tomllib"]):
        target = import_module("trilift.experiments.trust.fuzz_targets").TARGETS[name]
    plant(target.seeds(), Path(corpus))
    atheris.Setup([sys.argv[0], corpus, *options], target.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
