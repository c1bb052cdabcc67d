"""What comes out, before anything runs: other runtimes' integers, saturation without VNNI.

Pure: NumPy statements of arithmetic that kernels, here or elsewhere, execute. The extension is not
imported; C++ twins of the requantisers are in `native.requantize`.
"""

from __future__ import annotations
