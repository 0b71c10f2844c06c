"""All that touches Qualcomm's compiler and emulator (`onnxruntime-qnn`).

Vendor code runs in a worker process alone (`worker`, `session`), one a call, with a private folder and a time and a
memory bound (`process`). `compile` and `emulate` are its two callers; the readers (`logs`, `trace`, `graph_dump`,
`schematic`, `context`) take text that the compiler wrote and raise StepError on anything else.

What is handed out here is light, for the checks at start-up. The rest is imported from its module:
`anfbuild.qnn.compile.compile_context`, `anfbuild.qnn.compiled.Compiled`, `anfbuild.qnn.emulate.emulate`.
"""

from anfbuild.qnn.availability import unavailable
from anfbuild.qnn.options import PERFORMANCE_MODES, Options

__all__ = ["PERFORMANCE_MODES", "Options", "unavailable"]
