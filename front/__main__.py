"""``python -m trilift``: the command line."""

import sys

from trilift.cli import main

if __name__ == "__main__":
    sys.exit(main())
