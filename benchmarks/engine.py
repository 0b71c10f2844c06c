"""What the build machine itself costs: `python benchmarks/engine.py [PART ...]`, all parts by default.

Prints a Markdown table. The parts are files of their own: restore (hashing and copying out of the store), remote (a hit
on a server against one on this disk), sweep (a project of 50 recipes with nothing to do; jobs side by side).
"""

from __future__ import annotations

import argparse
import importlib

from project import table

PARTS = ("restore", "remote", "sweep")


def main() -> None:
    """Print the rows of the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", choices=[*PARTS, []], help="what to measure")
    parts = parser.parse_args().part or PARTS
    rows = [row for part in parts for row in importlib.import_module(f"engine_{part}").rows()]
    print(table(("what", "figure", "target"), rows), end="")


if __name__ == "__main__":
    main()
