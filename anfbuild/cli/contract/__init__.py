"""The placement contract of a recipe, `recipes/NAME.placement.csv`: the nodes that may be off the HTP, by target and
quantization.

Where the file is there, a build is held to it (`hold`, `judge`): a node that leaves the HTP without being listed fails
the build as a missed gate does. `--accept` rewrites the rows of what was built (`file`). It is in no step's key: what
was built stays built.
"""

from anfbuild.cli.contract.file import Contract, Listed, load, save
from anfbuild.cli.contract.hold import Hold
from anfbuild.cli.contract.judge import Judged, judge

__all__ = ["Contract", "Hold", "Judged", "Listed", "judge", "load", "save"]
