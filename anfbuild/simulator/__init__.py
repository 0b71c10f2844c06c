"""What a model costs on a chip: a cost model, no measurement and no compiler.

`predict` walks a float or QDQ graph, costs each node with a roofline (`roofline.py`, where the fit is described) from
the three figures of a chip that its file in conf/target gives, and says how far off it may be.
"""

from anfbuild.simulator.modes import MODES, mode_of
from anfbuild.simulator.predict import Prediction, predict
from anfbuild.simulator.rates import read_rates

__all__ = ["MODES", "Prediction", "mode_of", "predict", "read_rates"]
