"""The tests of the kit. A backend's test module takes them all and says whose they are:

>>> from tile_core.testing.conformance import *  # doctest: +SKIP
>>> TILE_BACKEND = "mine"
"""

from __future__ import annotations

from .test_compile import test_artifact, test_fingerprint
from .test_emit import test_source_is_deterministic, test_source_is_launchable
from .test_emulated import test_emulated
from .test_numerics import test_numerics
from .test_plugin import (
    test_checks_answer,
    test_devices_are_of_known_targets,
    test_facts_agree,
    test_first_target_is_the_default,
    test_import_is_light,
    test_roles_are_there_or_say_why,
    test_target_text,
    test_tested_devices_are_readable,
    test_version_of_the_interface,
)
from .test_runtime import (
    doubling,
    test_a_wrong_call_harms_nothing,
    test_bundle,
    test_calls_in_a_row_without_waiting,
    test_dimensions_of_each_call,
    test_kernels_take_turns,
    test_many_calls,
    test_outputs_are_allocated,
    test_the_callers_stream,
    test_threads_share_a_kernel,
)

__all__ = [
    "doubling",
    "test_a_wrong_call_harms_nothing",
    "test_artifact",
    "test_bundle",
    "test_calls_in_a_row_without_waiting",
    "test_checks_answer",
    "test_devices_are_of_known_targets",
    "test_dimensions_of_each_call",
    "test_emulated",
    "test_facts_agree",
    "test_fingerprint",
    "test_first_target_is_the_default",
    "test_import_is_light",
    "test_kernels_take_turns",
    "test_many_calls",
    "test_numerics",
    "test_outputs_are_allocated",
    "test_roles_are_there_or_say_why",
    "test_source_is_deterministic",
    "test_source_is_launchable",
    "test_target_text",
    "test_tested_devices_are_readable",
    "test_the_callers_stream",
    "test_threads_share_a_kernel",
    "test_version_of_the_interface",
]
