"""Placement: which unit runs each node of the source model, and why.

Joins what the compiler decided of the nodes of the QDQ model (`pieces`) with the source nodes that these came from and
with what the rules say of these (`join`, `reasons`), sums it up (`summary`), and writes it as a CSV file (`rows`).
"""

from anfbuild.placement.join import join
from anfbuild.placement.pieces import Piece, pieces
from anfbuild.placement.rows import COLUMNS, UNITS, Row, read_csv, share, write_csv
from anfbuild.placement.summary import off_htp, summary

__all__ = [
    "COLUMNS",
    "UNITS",
    "Piece",
    "Row",
    "join",
    "off_htp",
    "pieces",
    "read_csv",
    "share",
    "summary",
    "write_csv",
]
