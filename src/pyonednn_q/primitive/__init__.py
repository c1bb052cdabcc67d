"""primitive: what is asked of oneDNN, as values: problems, tensors, attributes, post-ops.

Frozen, hashable, validated when constructed, with a plain-tuple ``boundary()`` for the extension.
What may not enter: arrays that belong to one call, how a chain is lowered, and the extension.
"""

from __future__ import annotations
