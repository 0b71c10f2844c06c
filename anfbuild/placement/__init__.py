"""Placement: which unit runs which node, with the reason, as the compiler decided it.

Joins the compiler's verdict on each node with the node's work (MACs), sums it up, and writes it as a CSV file.
"""

from anfbuild.placement.table import COLUMNS, Row, summary, table, write_csv

__all__ = ["COLUMNS", "Row", "summary", "table", "write_csv"]
