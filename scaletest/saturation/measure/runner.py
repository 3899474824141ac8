"""A saturation run from its options to the result on disk: its target, its folder, its steps."""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from scaletest.load import busy_check
from scaletest.model.errors import AgentLost
from scaletest.model.labels import Labels
from scaletest.model.masking import HIDDEN, masked
from scaletest.observe.node.used_time import own_used_s, used_s
from scaletest.runs.environment import environment
from scaletest.runs.folder import RESULT
from scaletest.runs.places import new_path
from scaletest.runs.progress import Progress
from scaletest.runs.stopping import StopRequest, stopping
from scaletest.saturation.folder import SaturationFolder
from scaletest.saturation.judging.evaluation import SaturationResult, conclude
from scaletest.saturation.judging.sequence import SaturationSequence
from scaletest.saturation.measure.machine_use import WatchedMachine
from scaletest.saturation.measure.service_target import NamedService
from scaletest.saturation.measure.steps import Runner
from scaletest.saturation.measure.target import NamedQueue, NamedUrl, Target
from scaletest.saturation.options import SaturationOptions
from scaletest.saturation.plan import SaturationPlan

_SECRETS = ("--header", "-H")


def saturate(
    plan: SaturationPlan, options: SaturationOptions, progress: Progress
) -> tuple[SaturationFolder, int]:
    """Run a saturation; return its folder, and its exit code."""
    with ExitStack() as before:
        target = choose_target(options).find(plan)
        path, stop = new_path(os.environ, options.run_dir), StopRequest()
        folder = begin_folder(path, plan, options.labels, before)
        before.enter_context(progress.of_run(folder, plan.target))
        unwind = bool(options.cluster.service or options.agents.agent_jobs)
        with stopping(stop, unwind=unwind) as stack:
            for line in target.lines:
                progress.message(line)
            causes = not options.agents.agent_jobs
            _, code = measure(
                plan, target, folder, progress, stop, stack, target.lines, causes=causes
            )
        return folder, code


def begin_folder(
    path: Path, plan: SaturationPlan, labels: Labels, stack: ExitStack
) -> SaturationFolder:
    """Make a run's folder, held by us until the stack is unwound; without a step it goes then."""
    folder = SaturationFolder.create(path)
    stack.callback(folder.forget_empty)
    stack.enter_context(folder.locked())
    folder.begin(plan, environment(without_secrets(sys.argv)), labels)
    return folder


def measure(
    plan: SaturationPlan,
    target: Target,
    folder: SaturationFolder,
    progress: Progress,
    stop: StopRequest,
    stack: ExitStack,
    about: Sequence[str],
    *,
    causes: bool,
) -> tuple[SaturationResult, int]:
    """Load the target, up to the result on disk; return that, and its exit code.

    stack: takes down what was set up. about: lines that are kept with the result. causes: look at
    what this machine, and a service on it, do meanwhile.
    """
    noticed, lost = list[str](), None
    look: Callable[[], list[str]] = list
    if target.is_here:
        # warn of what keeps this machine busy beside the tester and the service
        servers = target.servers()
        look = busy_check.of_this_machine(lambda: own_used_s() + used_s(servers)).warnings
    try:
        load = target.set_up(stack)
        if causes:
            load = WatchedMachine(load, target.servers, target.port)
        runner = Runner(plan, load, folder.store, progress, stop)
        noticed = look()
        progress.warn(noticed)
        target.probe(load)
        result = runner.run()
        lost = runner.lost
    except AgentLost as error:
        result = conclude(SaturationSequence(plan), lost=error.message)  # before the first step
    warned = replace(result, warnings=(*noticed, *result.warnings))
    extra = {"lines": about, **({"replicas": target.replicas} if target.replicas else {})}
    folder.write(
        RESULT,
        {**warned.to_dict(), "noticed": noticed, **({"extra": extra} if about else {})},
    )
    return result, lost.exit_code if lost else result.verdict.kind.exit_code


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """Return a command line without values of headers and of query parameters, and without logins
    in addresses.
    """
    shown, hide = [], False
    for word in arguments:
        if hide or word.startswith("--header=") or (word.startswith("-H") and len(word) > 2):
            word = word.partition(":")[0] + f": {HIDDEN}"
        hide = word in _SECRETS
        shown.append(masked(word, service=True) if "://" in word else word)
    return shown


def choose_target(options: SaturationOptions) -> NamedQueue | NamedService | NamedUrl:
    """Return what the options name; its `find` looks at it, and changes nothing yet."""
    if options.queue:
        return NamedQueue(options.queue, options.arguments, options.http, options.agents)
    if options.cluster.service:
        return NamedService(
            options.cluster.service,
            may_hold=options.cluster.pause_autoscalers,
            is_tuned=bool(options.tune),
            http=options.http,
            agents=options.agents,
        )
    return NamedUrl(options.url, options.http, options.agents)
