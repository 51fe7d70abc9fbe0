"""Loads WGSL onto one device."""

from __future__ import annotations

from tile_core.backend import Artifact, LaunchSpec
from tile_core.errors import BackendError
from tile_core.hardware import Device

from ..probe import features_of
from .kernel import WebgpuKernel
from .session import Session, opened

# Lines that Tint and the standard ask for, which naga does not know: it takes the functions without them.
UNKNOWN = ("enable subgroups;", "diagnostic(off, subgroup_uniformity);")


class WebgpuLauncher:
    """``device`` is an adapter's number; the opened device is shared by all launchers of it."""

    def __init__(self, device: Device) -> None:
        self.device = device

    @property
    def session(self) -> Session:
        return opened(self.device.index)

    def load(self, artifact: Artifact, launch: LaunchSpec) -> WebgpuKernel:
        """Compile the pipelines. Raises ``BackendError``: the adapter lacks a feature, or its driver refuses the text."""
        session = self.session
        self._able(session, launch)
        text = artifact.data.decode("utf8")
        lines = [line for line in text.splitlines() if line not in UNKNOWN]
        try:
            module = session.device.create_shader_module(code="\n".join(lines))
        except Exception as error:
            raise BackendError(f"wgpu does not take the WGSL text: {error}") from error
        return WebgpuKernel(session, module, launch)

    def _able(self, session: Session, launch: LaunchSpec) -> None:
        missing = sorted(set(launch.extra.get("features", ())) - features_of(session.device))
        if missing:
            raise BackendError(
                f"the kernel uses {', '.join(missing)}, which {self.device.name} does not have",
                help="compile it for webgpu:default",
            )
        wanted = launch.extra.get("subgroup", 0)
        if wanted and session.subgroup != wanted:
            raise BackendError(
                f"the kernel exchanges values in subgroups of {wanted}, those of {self.device.name} are other",
                help="compile it for webgpu:default, which does without subgroups",
            )

    def synchronize(self) -> None:
        """Calls return when they are done."""

    def current_stream(self) -> int | None:
        return None
