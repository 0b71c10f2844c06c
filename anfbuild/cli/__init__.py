"""The command line: overrides in, a build or a sweep of builds, a table and an exit code out.

Only this room prints, and only `main` decides the exit code. Nothing heavy is imported before it is needed.
"""

from anfbuild.cli.app import main, run

__all__ = ["main", "run"]
