from __future__ import annotations

import subprocess
import sys

import pytest

from anfbuild.errors import RecipeError
from anfbuild.qnn import Options


def test_good_options_give_the_chip_and_the_vendors_words() -> None:
    options = Options(57, "v75", 4, "burst", 3)
    assert options.check().name == "SM8650"
    assert options.provider_options() == {
        "soc_model": "57",
        "vtcm_mb": "4",
        "htp_performance_mode": "burst",
        "htp_graph_finalization_optimization_mode": "3",
    }
    assert "vtcm_mb" not in Options(57, "v75").provider_options()


@pytest.mark.parametrize(
    ("options", "named", "choice"),
    [
        (Options(0, "v68"), "unknown SoC 0", "sm8650 (57)"),
        (Options(-1, "v68"), "unknown SoC -1", "sm8650 (57)"),
        (Options(57, "v73"), "v73 is not that of SM8650", "v75"),
        (Options(57, "v66"), "unknown Hexagon architecture 'v66'", "v68"),
        (Options(57, "v75", 0), "vtcm_mb 0", "8"),
        (Options(57, "v75", -2), "vtcm_mb -2", "8"),
        (Options(57, "v75", 9), "vtcm_mb 9", "8"),
        (Options(93, "v68", 4), "QCS6490", "2"),
        (Options(57, "v75", True), "vtcm_mb True", "8"),
        (Options(57, "v75", 8, "bursts"), "'bursts'", "burst"),
        (Options(57, "v75", 8, "burst", 4), "optimization level 4", "3"),
        (Options(57, "v75", 8, "burst", -1), "optimization level -1", "0"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name_with_the_choices(options: Options, named: str, choice: str) -> None:
    with pytest.raises(RecipeError) as error:
        options.check()
    assert named in error.value.what
    assert choice in error.value.choices


def test_a_misspelt_mode_gets_a_suggestion() -> None:
    with pytest.raises(RecipeError, match="did you mean 'sustained_high_performance'"):
        Options(57, "v75", performance_mode="sustained_high_performence").check()


def test_the_checks_need_no_heavy_library() -> None:
    heavy = "{'numpy', 'onnx', 'onnxruntime', 'onnxruntime_qnn'}"
    code = f"import sys, anfbuild.qnn.options, anfbuild.soc; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
