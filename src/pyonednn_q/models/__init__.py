"""models: what the command line does with ONNX models: explain, bench, run and diff."""
