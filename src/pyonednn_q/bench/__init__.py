"""Measure: INT8 against FP32 and the other types, from the command line.

A problem is a value, a suite is data, a run is immutable and says where it was made.
"""

from __future__ import annotations
