"""Many builds of one command line, by Hydra's sweepers and launchers.

Hydra's grammar says which jobs there are and a launcher of Hydra's starts them; each job composes its own recipe and
reports in files of its own. So a job that is wrong fails alone, any launcher will do, what is finished survives an
interruption, and `--resume` goes on with the rest.
"""

from anfbuild.cli.sweep.results import HEADINGS, Sweep
from anfbuild.cli.sweep.run import resume, sweep

__all__ = ["HEADINGS", "Sweep", "resume", "sweep"]
