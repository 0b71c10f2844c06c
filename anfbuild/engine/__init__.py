"""The build machine: steps, their keys, the store of their results, and the run that joins them.

It knows nothing of models, chips or data. Steps import `anfbuild.engine.step` and nothing else of this room.
"""
