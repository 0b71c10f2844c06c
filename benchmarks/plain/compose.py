"""Compose a config with Hydra's public API and import doit, nothing else: `compose.py CONFIG_FOLDER OVERRIDE…`."""

import sys

import doit.runner  # noqa: F401  # what is timed is the import
from hydra import compose, initialize_config_dir

with initialize_config_dir(config_dir=sys.argv[1], version_base="1.3"):
    compose("config", overrides=sys.argv[2:])
