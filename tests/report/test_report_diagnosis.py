"""The diagnosis in the results and on the page."""

from __future__ import annotations

from typing import Any

import pytest

from anfbuild.errors import StepError
from anfbuild.report.diagnosis import section, with_words
from anfbuild.report.html import html
from anfbuild.report.results import results

WORDS = ["stage emulated departs at node <up> (Add)."]


def test_the_words_are_a_section_of_the_page_and_escaped(parts: dict[str, Any]) -> None:
    page = html(results(**parts))
    told = section(page, WORDS)
    assert "<h2>Diagnosis</h2><ul><li>stage emulated departs at node &lt;up&gt; (Add).</li></ul>" in told
    assert told.index("<h2>Gates</h2>") < told.index("<h2>Diagnosis</h2>") < told.index("<h2>Accuracy</h2>")
    assert len(told.splitlines()) == len(page.splitlines()) + 1


def test_the_words_are_in_the_results_and_nothing_else_is(parts: dict[str, Any]) -> None:
    before = results(**parts)
    after = with_words(before, WORDS)
    assert after == {**before, "diagnosis": WORDS}
    with pytest.raises(StepError, match="diagnosis"):
        with_words(before, [3])  # type: ignore[list-item]


def test_a_page_without_the_section_on_accuracy_has_the_words_at_its_end() -> None:
    page = section("<html><body><p>short</p>\n</body></html>", ["the stage departs"])
    assert page.index("short") < page.index("the stage departs") < page.index("</body>")
