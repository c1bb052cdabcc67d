"""Random ONNX graphs, of one node or many, and what has to come of each beside onnxruntime."""
