"""Which rule explains a departure: what lint says of the nodes that depart, or what their encodings leave out."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from anfbuild.diagnosis.locate import Departure
from anfbuild.graph.constraints import NO_PASSES, RULES, Aim, Finding, inspect
from anfbuild.quantization.encodings import Encoding

_KINDS = {"emulated": ("exactness", "encodings"), "qdq": ("encodings", "exactness")}
"""Stage of integers -> kinds of rules that may explain it, the likeliest first."""
_CLIPPED = 1 / 256
"""From this share of a tensor's values on, what its range leaves out is more than a calibration gives up on purpose."""

SATURATES = "range-saturates"
"""The one name that is no rule of lint's: it takes the samples to see it."""


@dataclasses.dataclass(frozen=True)
class Explanation:
    """What is known of the departure's cause."""

    rule: str
    node: str
    message: str
    consequence: str
    remedy: str

    def to_json(self) -> dict[str, str]:
        """Plain values."""
        return dict(vars(self))


def explain(
    stage: str,
    departure: Departure,
    structure: onnx.ModelProto,
    sources: Mapping[str, Sequence[str]],
    source_findings: Sequence[Finding],
    judged_for: Aim,
) -> Explanation | None:
    """The rule that explains `departure`, if one does.

    What lint finds in `structure`, the model that was compiled, goes first: nothing has mended that. Then what it found
    in the source model (`source_findings`), where the departing nodes come from: a pass that was to mend a node may be
    what broke it. `sources` says of each node which nodes of the source model it does the work of, where not itself.
    """
    names = [node.name for node in departure.nodes]
    origins = [origin for name in names for origin in sources.get(name, [name])]
    kinds = _KINDS.get(stage)
    if kinds is None:
        return _by_pass([f for f in source_findings if _made_by(f, stage)], origins)
    found = inspect(structure, judged_for).findings
    near = [node.name for node in _around(structure, names)]
    return _by_kind(found, [*names, *near], kinds) or _by_kind(source_findings, origins, kinds)


def saturation(tensor: str, node: str, values: np.ndarray, encoding: Encoding | None) -> Explanation | None:
    """What the encoding's range leaves out of `values`, where that is much."""
    if encoding is None:
        return None
    limits = np.iinfo(encoding.dtype)
    low, high = ((limit - encoding.zero_point[0]) * encoding.scale[0] for limit in (limits.min, limits.max))
    step = encoding.scale[0]
    beyond = float(((values < low - step) | (values > high + step)).mean())
    if beyond < _CLIPPED:
        return None
    return Explanation(
        SATURATES,
        node,
        f"the encoding of {tensor!r} holds {low:.4g} to {high:.4g}, and the float model takes {values.min():.4g} to "
        f"{values.max():.4g}: {beyond:.1%} of the values are cut off",
        "What is cut off is lost for all that is computed from it.",
        "Calibrate on samples that look like these (dataset.samples), or keep the extremes (calibration=minmax).",
    )


def _by_kind(findings: Sequence[Finding], nodes: Sequence[str], kinds: Sequence[str]) -> Explanation | None:
    """The finding at one of `nodes` of the likeliest kind, of several at the node that comes first."""
    at = [finding for finding in findings if finding.node in nodes and RULES[finding.rule].kind in kinds]
    if not at:
        return None
    best = min(at, key=lambda f: (kinds.index(RULES[f.rule].kind), nodes.index(str(f.node))))
    return Explanation(best.rule, str(best.node), best.message, best.consequence, RULES[best.rule].remedy)


def _by_pass(findings: Sequence[Finding], nodes: Sequence[str]) -> Explanation | None:
    """The finding at one of `nodes`, which a rewrite of the build was to mend."""
    at = [finding for finding in findings if finding.node in nodes]
    if not at:
        return None
    best = min(at, key=lambda f: nodes.index(str(f.node)))
    return Explanation(
        best.rule,
        str(best.node),
        best.message,
        f"{best.mended_by} rewrites such a node, and what it made here does not compute the same.",
        RULES[best.rule].remedy,
    )


def _made_by(finding: Finding, stage: str) -> bool:
    """Whether the stage is the one that rewrites what was found."""
    if stage == "conditioned":
        return finding.mended_by == "clamp_masks"
    return finding.mended_by is not None and finding.mended_by not in NO_PASSES


def _around(model: onnx.ModelProto, names: Sequence[str]) -> list[onnx.NodeProto]:
    """The nodes that make what one of `names` reads: two operators may be wrong together only."""
    makers = {name: node for node in model.graph.node for name in node.output if name}
    read = dict.fromkeys(name for node in model.graph.node if node.name in names for name in node.input)
    return [makers[name] for name in read if name in makers]
