"""The cases of `onnx.backend.test`: what they have, and what became of them here."""
