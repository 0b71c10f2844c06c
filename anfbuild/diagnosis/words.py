"""A diagnosis in sentences: for the terminal, the page and diagnosis.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_BEFORE = {
    "converted": "the converted model and its source",
    "conditioned": "the conditioned and the converted model",
    "qdq": "the quantized model on the CPU and the float model",
    "emulated": "the HTP emulator and the CPU, on the quantized model",
}
_BUILT_UP = "Choose more bits (quantization=a16w8_per_channel), whose roundings are smaller."
_NEXT = {
    "converted": "A pass of the build is wrong there: report the node, and cut the model before it (model.outputs).",
    "conditioned": "Build without what rewrote it (condition.mask_clamp=null condition.equalize=false).",
    "qdq": "Choose more bits (quantization=a16w8_per_channel), or calibrate on samples like these.",
    "emulated": "Write the node otherwise, or choose another scheme (quantization=a16w8_per_channel).",
}


def sentences(document: Mapping[str, Any]) -> list[str]:
    """What `Diagnosis.to_json` says: of each stage how far it is off, of one that departs where, why and what to do."""
    return [sentence for stage in document["stages"] for sentence in stage_sentences(stage)]


def remedy(document: Mapping[str, Any]) -> tuple[str, str] | None:
    """(where the first stage past its bound departs, a hard one if there is one; what to do); None: none is past."""
    beyond = [stage for stage in document["stages"] if stage["departs"] is not None]
    if not beyond:
        return None
    stage = next((stage for stage in beyond if stage["hard"]), beyond[0])
    return _where(stage), _what_to_do(stage)


def stage_sentences(stage: Mapping[str, Any]) -> Iterator[str]:
    """Those of one stage."""
    name = stage["stage"]
    if stage["passed"] is None:
        yield f"{name}: not compared: {stage['reason']}."
        return
    bound = stage["bound"]
    figures = [out[bound["figure"]] for out in stage["outputs"]]
    most = "not a number" if None in figures else share(max(figures))
    kept = f"{'within' if stage['passed'] else 'past'} the bound of {share(bound['limit'])}"
    yield f"{name}: {_BEFORE[name]} differ by {most} of an output's range ({_FIGURES[bound['figure']]}), {kept}."
    if stage["departs"] is not None:
        yield f"{_where(stage)}."
        yield _what_to_do(stage)


def _where(stage: Mapping[str, Any]) -> str:
    found = stage["departs"]
    at = found["difference"]
    border = ", at the border" if found["at_border"] else ""
    text = f"stage {stage['stage']} departs at node {found['node']} ({found['op_type']}){border}"
    if len(found["suspects"]) > 1:
        text += f" or one of the {len(found['suspects']) - 1} before it, which could not be looked at one by one"
    figure = stage["bound"]["figure"]
    text += f": its output {at['tensor']!r} is off by {share(at[figure])} of its range"
    others = [node for node in found["nodes"] if node != found["node"]]
    if found["confirmed"]:
        text += ", also when " + (f"run alone with {', '.join(others[:3])}" if others else "run alone")
    else:
        text += "; run alone it is not, so the difference builds up before it"
    origins = [node for node in found["sources"] if node != found["node"] and not node.endswith(" Constant")]
    return text + (f"; it does the work of {', '.join(origins[:3])} in the source" if origins else "")


def _what_to_do(stage: Mapping[str, Any]) -> str:
    rule = stage["departs"]["rule"]
    if rule is None and not stage["departs"]["confirmed"]:
        return f"No node is wrong alone, and no rule is known of it. {_BUILT_UP}"
    if rule is None:
        return f"No rule is known of it. {_NEXT[stage['stage']]}"
    message = rule["message"].rstrip(".")
    return f"Rule {rule['rule']}, node {rule['node']}: {message}. {rule['consequence']} {rule['remedy']}"


def share(value: float | None) -> str:
    """A share of a range in words: in LSB from a tenth of one on, else as a number."""
    if value is None:
        return "more than any number"
    return f"{value * 256:.3g} LSB" if value * 256 >= 0.1 else f"{value:.2g}"


_FIGURES = {"rms": "root mean square", "max": "at most"}
