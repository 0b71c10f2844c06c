"""ONNX graphs: load and save, shapes and MAC counts, passes that clean a model, and execution on the CPU.

`execute.py` is the only maker of CPU sessions in the house, so that every reference runs with the same settings.
"""

from anfbuild.graph.execute import Session
from anfbuild.graph.model import check, load, save, serialize

__all__ = ["Session", "check", "load", "save", "serialize"]
