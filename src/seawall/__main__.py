"""``python -m seawall`` and the console script ``seawall``."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line, or say how to install what it needs."""
    try:
        from seawall.cli.main import main as run
    except ModuleNotFoundError as missing:
        if missing.name != "click":
            raise
        print("error: the command line needs click (it is not installed)", file=sys.stderr)
        print("hint: pip install 'seawall[cli]'", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return run()


if __name__ == "__main__":
    sys.exit(main())
