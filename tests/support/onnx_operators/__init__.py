"""ONNX operators: drawn calls, what they mean in exact numbers, and how far float32 may be off."""
