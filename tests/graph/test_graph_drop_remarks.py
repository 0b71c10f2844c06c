"""What exporters say for people is gone; what programs read stays."""

from __future__ import annotations

from graph_models import conv_model

from anfbuild.graph import clean, serialize


def test_two_exports_of_one_network_become_the_same_model():
    plain, told = conv_model(), conv_model()
    told.doc_string = told.graph.doc_string = "exported by hand"
    told.producer_name, told.producer_version = "exporter", "2.1"
    for part in (*told.graph.node, *told.graph.input, *told.graph.initializer):
        part.doc_string = "File /home/me/model.py, line 3"
    models = [clean(model, {})[0] for model in (plain, told)]
    assert serialize(models[0]) == serialize(models[1])
    assert b"/home/me" not in serialize(models[1])
    assert b"/home/me" in serialize(told)
