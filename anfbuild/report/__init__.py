"""The report: what a build found, as one JSON document, as one page and as a few rows for a terminal, and its verdict.

Every figure says where it comes from, and every figure that is missing says why. Only the standard library is used, so
that gates can be checked at start-up and saved results judged again without any model library.

The document and the page are imported from their modules, `results` and `html`: a build with nothing to do needs
neither.
"""

from anfbuild.report.gates import GATES, Verdict, judge
from anfbuild.report.summary import summary
from anfbuild.report.words import verdict

__all__ = ["GATES", "Verdict", "judge", "summary", "verdict"]
