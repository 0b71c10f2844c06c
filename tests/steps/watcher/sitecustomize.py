"""On PYTHONPATH of a process that a watched step starts: it is watched too, and sees the same clock."""

import os
import sys
from pathlib import Path

if "ANFBUILD_WATCH" in os.environ:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import watched

    del sys.path[0]
    if watched.SHIFT in os.environ:
        watched.shift_clock(float(os.environ[watched.SHIFT]))
    watched.watch()
