"""Pools of ONNX: drawn, computed window by window as the standard's text says, and judged."""
