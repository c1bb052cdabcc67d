"""Hostile calls: right ones with something wrong about them, and a judge of what comes of them."""
