"""graph: what a model is made of, whoever wrote it: the kinds of its operators."""
