"""SIMT lowering: a plan to what each thread does. Takes a ``TilePlan``, gives a thread-level ``TileProgram``."""
