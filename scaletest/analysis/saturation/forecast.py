"""How long a search takes at most, before anything is measured."""

from __future__ import annotations

from scaletest.model.saturation import Mode, SaturationPlan


def longest_s(plan: SaturationPlan) -> float:
    """Seconds of all steps, where one request takes less than a tenth of a step."""
    if plan.mode == Mode.SWEEP:
        levels = 1 + int((plan.highest - plan.start) / plan.increment) if plan.increment else 1
        return plan.warm_s + levels * plan.repeats * plan.step_s
    operate = plan.operate_s or 2 * plan.step_s
    return plan.warm_s + (plan.most_steps + 2 * plan.confirm) * plan.step_s + operate
