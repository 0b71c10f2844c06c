"""The diagnosis of a build in its results and on its page, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from anfbuild.report import markup
from anfbuild.report.results import validate

_BEFORE = markup.section("Accuracy", "").removesuffix("</section>")
_END = "</body>"


def with_words(results: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """`results` with the sentences of a diagnosis as `diagnosis`. Raises StepError as `validate` does."""
    document = {**results, "diagnosis": list(words)}
    validate(document)
    return document


def section(page: str, words: Sequence[str]) -> str:
    """report.html with a section of these sentences behind that on gates, or at its end where that has none."""
    text = "".join(f"<li>{escape(sentence)}</li>" for sentence in words)
    told = markup.section("Diagnosis", f"<ul>{text}</ul>")
    before = _BEFORE if _BEFORE in page else _END
    return page.replace(before, f"{told}\n{before}", 1)
