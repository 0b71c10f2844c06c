"""What the HTP does with a graph, told from its structure alone: rules, and where each node would run.

`inspect` looks at a model, trained or not, with or without its weights, and gives findings and a predicted placement.
A rule is one function, in the file of its kind; its docstring is the message (`rule.py`). Which operators the HTP takes
is data, `operators.json`, as the compiler said of each; `support.py` reads it and `document.py` writes it for people.
"""

from anfbuild.graph.constraints.aim import FLOAT16, Aim, Precision
from anfbuild.graph.constraints.document import document
from anfbuild.graph.constraints.inspect import Inspection, inspect
from anfbuild.graph.constraints.placement import Placed
from anfbuild.graph.constraints.rule import NO_PASSES, RULES, Finding, Severity

__all__ = [
    "FLOAT16",
    "NO_PASSES",
    "RULES",
    "Aim",
    "Finding",
    "Inspection",
    "Placed",
    "Precision",
    "Severity",
    "document",
    "inspect",
]
