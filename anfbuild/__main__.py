"""`python -m anfbuild` is `anfbuild`."""

from anfbuild.cli import run

run()
