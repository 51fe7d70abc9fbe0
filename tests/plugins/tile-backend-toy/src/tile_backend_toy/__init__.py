"""Toy's targets for tile."""
