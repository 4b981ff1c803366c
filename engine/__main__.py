"""``python -m evalengine`` is the command."""

import sys

from .cli.process import command

if __name__ == "__main__":
    sys.exit(command())
