from __future__ import annotations

import yaml

from anfbuild.cli.disagreement import agreed
from anfbuild.recipe.files import shipped


def test_a_build_without_the_gate_is_held_to_what_the_gates_say_by_default() -> None:
    gates = yaml.safe_load((shipped() / "conf" / "gates" / "default.yaml").read_text(encoding="utf-8"))
    assert agreed() == agreed(gates) == gates["agreement_lsb"]["max"]


def test_the_strictest_of_several_gates_counts() -> None:
    assert agreed({"agreement_lsb": {"min": None, "max": 4.0}}, {"agreement_lsb": {"max": 8.0}}, {}) == 4.0
