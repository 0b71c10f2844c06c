"""Reads the log of a compile: for which chip it was, and which node passed the compiler's validation or why not."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from anfbuild.errors import StepError

_OPTION = re.compile(r"init graph option: (\w+) = (\S+)")
_VALIDATION = re.compile(r"Validation (PASSED|FAILED) for \d+ nodes in ")
_NODE = re.compile(r"Operator type: (\S+) Node name: (.*?) Node index: \d+")
_REASON = re.compile(r"REASON : (.*)", re.DOTALL)
_QNN_ERROR = re.compile(r"<E>\s*(.*)", re.DOTALL)
# QNN says of every graph that it does not know its own option; these say that something failed, not why.
_NOISE = ("unexpected GraphHtpSettings option", "QnnBackend_validateOpConfig failed", "Failed to validate op ")


@dataclass(frozen=True)
class Validation:
    """The last verdict on one node, by the name that it had then (layout transformation adds `_token_N`)."""

    op_type: str
    passed: bool
    reason: str


@dataclass
class BuildLog:
    """What a compile says about itself. `options` holds every value that its graphs were prepared with, by option."""

    options: dict[str, set[str]] = field(default_factory=dict)
    validations: dict[str, Validation] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def option(self, name: str) -> str:
        """The one value of an option, the same for all graphs; StepError where there is none or there are several."""
        values = self.options.get(name, set())
        if len(values) != 1:
            raise StepError(
                f"the compiler's log says {len(values)} values of {name} ({', '.join(sorted(values)) or 'none'}) "
                "where it should say one",
                remedy="This version of onnxruntime-qnn logs in another form: use one of the version matrix.",
            )
        return next(iter(values))


def read(text: str) -> BuildLog:
    """Reads a JSON list of [severity, message] in the order of logging; StepError for anything else."""
    log = BuildLog()
    pending: list[str] = []  # QNN's own errors since the last verdict: the real cause of the next refusal
    for message in _messages(text):
        for name, value in _OPTION.findall(message):
            log.options.setdefault(name, set()).add(value)
        error = _QNN_ERROR.search(message)
        if error and not error[1].startswith(_NOISE):
            pending.append(_line(error[1]))
        verdict = _VALIDATION.match(message)
        if verdict:
            _validate(log, message, verdict[1] == "PASSED", pending)
            log.errors += pending
            pending = []
    log.errors = list(dict.fromkeys([*log.errors, *pending]))
    return log


def _messages(text: str) -> list[str]:
    try:
        return [message for severity, message in json.loads(text) if isinstance(message, str)]
    except (ValueError, TypeError, RecursionError) as error:
        raise StepError("the compiler's log is not a list of [severity, message]") from error


def _validate(log: BuildLog, message: str, passed: bool, pending: list[str]) -> None:
    told = _REASON.search(message)
    causes = [_line(told[1])] if told else []
    reason = "" if passed else " ".join(dict.fromkeys([*causes, *pending]))
    for op_type, name in _NODE.findall(message):
        log.validations[name] = Validation(op_type, passed, reason)


def _line(text: str) -> str:
    return " ".join(text.split())
