"""A backend that is kept small to be read and copied."""
