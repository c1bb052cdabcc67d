"""What is asked of a primitive, as values: tensors, problems, attributes, known faults.

Frozen, hashable, validated when constructed, with a plain-tuple ``boundary()`` for the extension.
What may not enter: arrays that belong to one call, and the extension itself.
"""

from __future__ import annotations
