"""predict: every output bit of a kernel before it runs, and how two arithmetics differ.

Pure: NumPy in the operation order of each implementation, over the region that was compared.
"""

from __future__ import annotations
