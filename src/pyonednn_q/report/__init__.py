"""Tables, drawings and pages of any values; nothing else writes HTML, SVG or CSV.

It knows text and numbers, and no subject: rooms give it columns, boxes, bars and lines.
"""

from __future__ import annotations
