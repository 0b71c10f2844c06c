"""What a model is for: how a sample becomes its inputs, how its outputs become an answer, how good the answers are.

One file a task, numpy only, so that the same code serves evaluation, the report and an application.
"""

from anfbuild.tasks.registry import KINDS, ON_TEXTS, check, check_inputs, get
from anfbuild.tasks.task import Content, InputSpec, Prediction, Score, Task

__all__ = ["KINDS", "ON_TEXTS", "Content", "InputSpec", "Prediction", "Score", "Task", "check", "check_inputs", "get"]
