"""What a session loaded, against what was compiled."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from anfbuild.errors import StepError
from anfbuild.qnn import Options, unavailable
from anfbuild.qnn.compile import compile_context
from anfbuild.qnn.context import Context
from anfbuild.qnn.emulate import assert_placed, emulate, online_prepare_ms
from anfbuild.qnn.options import CPU_PROVIDER, PROVIDER
from anfbuild.qnn.verdicts import Group

HOST = (("x_Q", "QuantizeLinear"), ("odd", "Erf"), ("y_DQ", "DequantizeLinear"))
BUILT = Context(57, "2.51.0", "v2.51.0.1", ("one", "two"), ("model.bin",), HOST, ("y",))
ON_HTP = [Group(PROVIDER, (("one", "EPContext"),)), Group(PROVIDER, (("two", "EPContext"),))]
ON_CPU = [Group(CPU_PROVIDER, (node,)) for node in HOST]


def test_what_is_loaded_as_it_was_compiled_is_right() -> None:
    assert_placed([*ON_HTP, *ON_CPU], BUILT)
    assert_placed([*ON_HTP, *ON_CPU[1:]], BUILT)  # the session may merge nodes of the CPU


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([*ON_HTP[:1], *ON_CPU], "does not hold 1 of 2 compiled graphs"),
        ([Group(CPU_PROVIDER, ON_HTP[0].nodes), ON_HTP[1], *ON_CPU], "does not hold 1 of 2"),
        ([*ON_HTP, *ON_CPU, Group("DmlExecutionProvider", (("key", "Conv"),))], "DmlExecutionProvider took a part"),
        (
            [*ON_HTP, *ON_CPU, Group(CPU_PROVIDER, (("key", "Conv"),))],
            "4 nodes are on the CPU, and the compile left 3 there: key (Conv)",
        ),
        ([], "does not hold 2 of 2"),
    ],
)
def test_a_difference_is_named(groups: list[Group], words: str) -> None:
    with pytest.raises(StepError, match=re.escape(words)) as error:
        assert_placed(groups, BUILT)
    assert "not loaded as it was compiled" in str(error.value)


@pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))
def test_a_context_of_other_parts_than_were_prepared_is_refused(
    make_model: Callable[..., bytes], tmp_path: Path
) -> None:
    options = Options(57, "v75", 8)
    compiled = compile_context(make_model(), options, tmp_path / "context")
    feeds = [{"x": np.zeros((1, 3, 16, 16), np.float32)}]
    assert emulate(tmp_path / "context", feeds, options, partitions=compiled.partitions).outputs
    with pytest.raises(StepError, match="holds 1 compiled graphs, and the compile made 2"):
        emulate(tmp_path / "context", feeds, options, partitions=2)
    assert online_prepare_ms(make_model(), options, partitions=1) > 0
    with pytest.raises(StepError, match="1 parts of it are on the HTP, and an offline compile makes 2"):
        online_prepare_ms(make_model(), options, partitions=2)
