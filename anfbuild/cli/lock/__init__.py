"""The lock of a recipe, `recipes/NAME.lock.yaml`: what a build was made of and what came out, so that another one can
be held to it.

`--lock` writes the entry of the target and scheme that was built (`contents`, `file`), `--locked` refuses a build that
would leave it, and fails one that came out different (`contract`). Across two CPU feature classes
(`anfbuild.compat.cpu`) figures are compared, by the tolerance that the lock states; within one, bytes.
"""

from anfbuild.cli.lock.contents import made
from anfbuild.cli.lock.contract import check_asked, check_made, require
from anfbuild.cli.lock.file import Entry, entry_name, load, save

__all__ = ["Entry", "check_asked", "check_made", "entry_name", "load", "made", "require", "save"]
