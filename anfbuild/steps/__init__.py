"""The steps, one a file: what each needs, what it reads of the recipe, and one call into the rooms below.

`GRAPH` is the whole task graph. Importing it costs next to nothing: steps import what is heavy when they run.
"""

from anfbuild.engine.step import Step
from anfbuild.steps.assets import assets
from anfbuild.steps.baseline import baseline
from anfbuild.steps.calibrate import calibrate
from anfbuild.steps.condition import condition
from anfbuild.steps.convert import convert
from anfbuild.steps.dataset import dataset
from anfbuild.steps.diagnose import diagnose
from anfbuild.steps.emulate import emulate
from anfbuild.steps.evaluate import evaluate
from anfbuild.steps.fetch import fetch
from anfbuild.steps.joint_package import package as joint_package
from anfbuild.steps.joint_report import report as joint_report
from anfbuild.steps.lint import lint
from anfbuild.steps.lower import lower
from anfbuild.steps.outline import outline
from anfbuild.steps.package import package
from anfbuild.steps.place import place
from anfbuild.steps.plan import plan
from anfbuild.steps.prepare import prepare
from anfbuild.steps.quantize import quantize
from anfbuild.steps.report import report
from anfbuild.steps.rough import rough
from anfbuild.steps.simulate import simulate

GRAPH: dict[str, Step] = {
    step.name: step
    for step in (
        fetch,
        assets,
        dataset,
        convert,
        baseline,
        condition,
        calibrate,
        quantize,
        plan,
        prepare,
        emulate,
        evaluate,
        simulate,
        place,
        package,
        report,
        lint,
        diagnose,
    )
}

JOINT: dict[str, Step] = {step.name: step for step in (joint_package, joint_report)}
"""The steps over all components of a recipe that has several; each of these has all of `GRAPH` for itself."""

PREDICTION: dict[str, Step] = {step.name: step for step in (outline, rough, lower)}
"""What `anfbuild predict` needs of a model that is no recipe's."""

__all__ = ["GRAPH", "JOINT", "PREDICTION"]
