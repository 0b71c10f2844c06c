"""lint: what the rules say of the source model, and where its nodes would run, before anything is calibrated.

Nothing needs it: it is planned where it is asked for, and with `goal=convert`.
"""

from __future__ import annotations

from anfbuild.engine.step import Job, step
from anfbuild.steps.aim import Judged, judge
from anfbuild.steps.files import write_json


@step(needs=("convert",), config=Judged)
def lint(job: Job[Judged]) -> None:
    """Judge the source model's structure."""
    _, aim, found = judge(job.config, job.inputs["convert"])
    write_json(
        job.output / "lint.json",
        {
            "target": aim.target,
            "arch": aim.arch,
            "quantization": aim.precision.name,
            "findings": [finding.to_json() for finding in found.findings],
            "placement": [placed.to_json() for placed in found.placement],
            "source": "predicted",
        },
    )
