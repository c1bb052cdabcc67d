"""The algebra of one value: constants, steps, chains, FakeQuantize, and what they mean.

What may not enter: oneDNN's attributes and masks (compose), rewriting (rewrite), the extension.
Everything here is a frozen value or a pure function of NumPy arrays.
"""

from __future__ import annotations
