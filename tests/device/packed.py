"""The packages as wheels in a folder that is carried to another machine, and on its path there."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
WHEELS = ("./tile-core", "./tile-backend-cuda", "pluggy")


def wheels(folder: Path) -> None:
    """Makes the wheels in ``folder/wheels``; needs pip."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder / "wheels"), *WHEELS]
    subprocess.run(command, cwd=ROOT, check=True)


def unpacked(folder: Path) -> Path:
    """Unpacks the wheels of ``folder`` to a new folder; needs no pip."""
    site = Path(tempfile.mkdtemp(prefix="tile-site-"))
    for wheel in sorted((folder / "wheels").glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
    return site


def first_on_path(site: Path) -> None:
    """This process and its children import from ``site`` before anything else."""
    sys.path.insert(0, str(site))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))
