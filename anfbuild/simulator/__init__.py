"""What a model costs on a chip: a cost model, no measurement.

With the features of a compile (`anfbuild.qnn.features`), `predict` takes the latency from the costs of compiled work of
the chip's file in conf/target (`compiled.py`, fitted by `fit.py`). Without, it is the sum of a roofline over the nodes
of the float or QDQ graph (`roofline.py`), of three figures of the chip, and the interval says that it is farther off.

Execution blocks and their DRAM bytes come of the graph and the on-chip memory alone (`tiling.py`, `schedule.py`,
`residency.py`, `blocks.py`); memory of these and of the compile (`memory.py`).
"""

from anfbuild.simulator.modes import MODES, mode_of
from anfbuild.simulator.predict import Prediction, predict
from anfbuild.simulator.rates import read_rates

__all__ = ["MODES", "Prediction", "mode_of", "predict", "read_rates"]
