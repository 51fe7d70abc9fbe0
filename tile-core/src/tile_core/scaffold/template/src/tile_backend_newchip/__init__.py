"""Newchip's targets for tile."""
