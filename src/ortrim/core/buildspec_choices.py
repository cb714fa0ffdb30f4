"""What a buildspec comes to for one target or one model: its own choices where it makes them, else the common ones."""

import dataclasses
from typing import Literal

from ortrim.core.buildspec import BuildSpec
from ortrim.core.model_spec import ModelSpec, SessionSpec
from ortrim.core.profiles import PROFILES, Levers
from ortrim.core.target_spec import DEFAULT_ANDROID, FRAMEWORK_LINKAGE, AndroidSpec, AppleSpec, Budgets, TargetSpec
from ortrim.core.targets import APPLE, CATALYST, TARGETS, OperatingSystem


def levers_of(spec: BuildSpec) -> Levers:
    """Return the levers of a buildspec: its profile's, but for those that it chooses itself.

    Profile `upstream` is upstream's own flags, whatever a buildspec for another profile chooses.
    """
    if spec.profile == "upstream":
        return PROFILES[spec.profile]
    chosen = {name: value for name, value in vars(spec.levers).items() if value is not None}
    return dataclasses.replace(PROFILES[spec.profile], **chosen)


def linkage_of(spec: BuildSpec, target: TargetSpec) -> Literal["shared", "static"]:
    """Return how applications link the runtime of one target; a dynamic framework is linked as a shared library."""
    known = TARGETS.get(target.id)
    framework = apple_of(spec, target).framework if known and known.system in APPLE else None
    return target.linkage or (FRAMEWORK_LINKAGE[framework] if framework else spec.linkage)


def session_of(spec: BuildSpec, model: ModelSpec) -> SessionSpec:
    """Return the choices for one model's session: its own where it makes them, the buildspec's for the rest."""
    return spec.session.replaced_by(model.session) if model.session else spec.session


def android_of(spec: BuildSpec, target: TargetSpec) -> AndroidSpec:
    """Return the choices for one Android target; all are made but `ndk`, which is None for the pinned version."""
    common = DEFAULT_ANDROID.replaced_by(spec.android)
    return common.replaced_by(target.android) if target.android else common


def apple_of(spec: BuildSpec, target: TargetSpec) -> AppleSpec:
    """Return the choices for one Apple target; None where the default depends on more than the buildspec."""
    return spec.apple.replaced_by(target.apple) if target.apple else spec.apple


def deployment_key(identifier: str) -> Literal["ios_deployment_target", "macos_deployment_target"]:
    """Return the key that holds an Apple target's deployment target; Mac Catalyst goes by versions of iOS."""
    mac = TARGETS[identifier].system is OperatingSystem.MACOS and identifier != CATALYST
    return "macos_deployment_target" if mac else "ios_deployment_target"


def deployment_target_of(spec: BuildSpec, target: TargetSpec) -> str | None:
    """Return the oldest system that is asked for of an Apple target; None when nothing is asked."""
    chosen = apple_of(spec, target)
    asked: str | None = getattr(chosen, deployment_key(target.id))
    return asked


def merged_budgets(spec: BuildSpec, target: TargetSpec) -> Budgets:
    """Return the budgets of one target: its own where it gives them, the buildspec's for the rest."""
    return spec.budgets.replaced_by(target.budgets) if target.budgets else spec.budgets
