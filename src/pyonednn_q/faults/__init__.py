"""faults: which kernels are accepted and wrong, which are slow, and what would run instead.

`guards` is the table of known faults, `capability` what keeps a problem on generated code,
`variants` the nearest problems that a refusal names.
"""

from __future__ import annotations
