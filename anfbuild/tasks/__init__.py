"""What a model is for: how an image becomes its input, how its output becomes an answer, how good the answers are.

One file a task, numpy only, so that the same code serves evaluation, the report and an application.
"""

from anfbuild.tasks.inputs import read_input
from anfbuild.tasks.registry import KINDS, check, get
from anfbuild.tasks.task import InputSpec, Prediction, Score, Task

__all__ = ["KINDS", "InputSpec", "Prediction", "Score", "Task", "check", "get", "read_input"]
