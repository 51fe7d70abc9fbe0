"""Scheduling of loops over asynchronous engines."""
