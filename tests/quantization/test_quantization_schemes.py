import subprocess
import sys

import pytest

from anfbuild.errors import RecipeError
from anfbuild.quantization.schemes import AS_IS, SCHEMES, check


@pytest.mark.parametrize("name", SCHEMES)
def test_every_scheme_runs_on_a_recent_architecture(name: str) -> None:
    assert check(name, "v75") is SCHEMES[name]


def test_of_a_model_that_is_quantized_already_the_bits_are_its_own() -> None:
    assert check("as_is", "v68") is None


def test_16_bit_weights_need_v73() -> None:
    assert check("a16w16", "v73").weight_bits == 16
    with pytest.raises(RecipeError, match=r"v73 or newer.*v69") as error:
        check("a16w16", "v69")
    assert "a16w8_per_channel" in str(error.value)
    assert "a16w16" not in error.value.choices


def test_unknown_scheme_names_the_nearest_and_all() -> None:
    with pytest.raises(RecipeError, match="did you mean 'int8_per_channel'") as error:
        check("int8_perchannel", "v75")
    assert error.value.choices == [*SCHEMES, AS_IS]


def test_malformed_architecture_is_refused() -> None:
    with pytest.raises(RecipeError, match="not an HTP architecture"):
        check("int8", "75")


def test_the_checks_import_nothing_heavy() -> None:
    code = (
        "import sys, anfbuild.quantization.schemes, anfbuild.quantization.estimators\n"
        "print([m for m in ('numpy', 'onnx', 'onnxruntime') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
