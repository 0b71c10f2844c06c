"""The diagnosis of a build in its results and on its page, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from anfbuild.report import markup
from anfbuild.report.results import validate

_BEFORE = markup.section("Accuracy", "").removesuffix("</section>")


def with_words(results: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """`results` with the sentences of a diagnosis as `diagnosis`. Raises StepError as `validate` does."""
    document = {**results, "diagnosis": list(words)}
    validate(document)
    return document


def section(page: str, words: Sequence[str]) -> str:
    """report.html with a section of these sentences behind that on gates; the page as it is, where that has none."""
    text = "".join(f"<li>{escape(sentence)}</li>" for sentence in words)
    told = markup.section("Diagnosis", f"<ul>{text}</ul>")
    return page.replace(_BEFORE, f"{told}\n{_BEFORE}", 1)
