"""Recipes: what keys they have (`schema`), how they are composed from files and the command line, and errors that name
the file, the line and what would be right.

Importing this room imports Hydra; whoever only prints a help text does not want it.
"""

from anfbuild.recipe.catalogue import PRIMARY, Catalogue
from anfbuild.recipe.compose import Recipe, compose, parse

__all__ = ["PRIMARY", "Catalogue", "Recipe", "compose", "parse"]
