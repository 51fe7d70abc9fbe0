"""A backend whose import fails, as one does whose vendor library is missing."""

from __future__ import annotations

import no_such_vendor_library  # noqa: F401  # pyright: ignore[reportMissingImports]
