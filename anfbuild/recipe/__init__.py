"""Recipes: what keys they have (`schema`), how they are composed from files and the command line, and errors that name
the file, the line and what would be right.

Importing this room does not import Hydra: a recipe that was composed before needs none of it.
"""

from anfbuild.recipe.memory import compose
from anfbuild.recipe.recipe import Recipe

__all__ = ["Recipe", "compose"]
