"""Rules and findings. A rule is a function over a scene; its docstring is the message that the user sees."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from anfbuild.graph.constraints.scene import Node, Scene


class Severity(enum.Enum):
    """How bad what is found is, after all that the build mends of itself."""

    ERROR = "error"
    """The build stops, or what it makes is wrong."""
    WARNING = "warning"
    """It runs, at a cost in time or accuracy."""
    NOTE = "note"
    """The build mends it, or it is good to know."""


@dataclasses.dataclass(frozen=True)
class Hit:
    """Where a rule found something."""

    node: Node | None
    """None: the whole model."""
    detail: str = ""
    """What is so at this node, in figures and names."""
    mended: bool = True
    """False where the rule's pass leaves this one as it is."""


NO_PASSES = {"quantize", "execute", "clamp_masks"}
"""What mends a graph and leaves its nodes: the quantizer, the session of the reference, another constant."""

Check = Callable[[Scene], Iterator[Hit]]


@dataclasses.dataclass(frozen=True)
class Rule:
    """One rule."""

    name: str
    kind: str
    """The file that it stands in: exactness, operators, ..."""
    severity: Severity
    """Where nothing mends it."""
    message: str
    consequence: str
    remedy: str
    mended_by: str | None
    """The pass in graph/passes, or the part of the build, that mends it."""
    check: Check


@dataclasses.dataclass(frozen=True)
class Finding:
    """What a rule found at a node; `node` and `op_type` are None where it is about the whole model."""

    node: str | None
    op_type: str | None
    rule: str
    severity: Severity
    message: str
    detail: str
    """What is so at this node alone; `message` ends with it."""
    consequence: str
    remedy: str
    mended_by: str | None

    def to_json(self) -> dict[str, str | None]:
        """Plain values."""
        return {**vars(self), "severity": self.severity.value}


RULES: dict[str, Rule] = {}
"""Every rule by its name, in the order of its file."""


def rule(
    severity: Severity, *, consequence: str, remedy: str, mended_by: str | None = None, **limits: Any
) -> Callable[[Check], Check]:
    """Register a function as a rule under its name. `limits` fill the places {in braces} of all its texts."""

    def register(check: Check) -> Check:
        texts = [inspect.cleandoc(check.__doc__ or "").replace("\n", " "), consequence, remedy]
        message, consequence_, remedy_ = (text.format(**limits) for text in texts)
        name = check.__name__.replace("_", "-")
        kind = check.__module__.rpartition(".")[2]
        RULES[name] = Rule(name, kind, severity, message, consequence_, remedy_, mended_by, check)
        return check

    return register


def findings(scene: Scene) -> Iterator[Finding]:
    """What every rule finds. Those that a pass mends go first: what it rewrites is no matter for the others."""
    for entry in sorted(RULES.values(), key=lambda entry: entry.mended_by is None):
        for hit in entry.check(scene):
            no_quantizer = entry.mended_by == "quantize" and scene.aim.precision.as_is
            mended_by = entry.mended_by if hit.mended and not no_quantizer else None
            if hit.node is not None and mended_by is not None and mended_by not in NO_PASSES:
                scene.mended[hit.node.position] = mended_by
            yield Finding(
                hit.node.label if hit.node else None,
                hit.node.op_type if hit.node else None,
                entry.name,
                Severity.NOTE if mended_by else entry.severity,
                f"{entry.message} ({hit.detail})" if hit.detail else entry.message,
                hit.detail,
                entry.consequence,
                f"None is needed: {mended_by} mends it." if mended_by else entry.remedy,
                mended_by,
            )
