"""Readers: one file, or folder, a model format; each gives an ONNX model that computes the same function.

A reader keeps the names, the order of dimensions and the element types of the model's own inputs and outputs. What a
model says of its quantization stays in it as QuantizeLinear and DequantizeLinear. A bad file is a StepError.
What takes PyTorch or TensorFlow runs in a worker process (outside.py, tasks.py): neither is ever imported in a build's.
"""

from anfbuild.sources.readers.formats import FORMATS, find_format
from anfbuild.sources.readers.reading import Example, read

__all__ = ["FORMATS", "Example", "find_format", "read"]
