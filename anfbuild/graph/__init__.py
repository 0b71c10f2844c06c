"""ONNX graphs: load and save, shapes and MAC counts, passes that clean a model, and execution on the CPU.

`execute.py` is the only maker of CPU sessions in the house, so that every reference runs with the same settings.
"""

from anfbuild.graph.edit import PassResult
from anfbuild.graph.execute import Session, run_each
from anfbuild.graph.model import check, load, save, serialize
from anfbuild.graph.pipeline import Cleaned, clean, clean_in_place
from anfbuild.graph.shapes import OpenDimension, input_values, interface, node_macs, open_dimensions, value_shapes

__all__ = [
    "Cleaned",
    "OpenDimension",
    "PassResult",
    "Session",
    "check",
    "clean",
    "clean_in_place",
    "input_values",
    "interface",
    "load",
    "node_macs",
    "open_dimensions",
    "run_each",
    "save",
    "serialize",
    "value_shapes",
]
