"""Passes over a model, one a file. Each changes the model in place and says in its docstring what it requires and
ensures: `run(model, ...) -> PassResult`. `anfbuild.graph.pipeline` runs them in order.
"""
