"""Settings in texts, which the command line words as options, and Python as arguments.

A text names a setting as <max_step>.
"""

import re

_NAMES = """
    agent_jobs agents allow_commands allow_host archive client deployment device_glob force
    header in_flight keep keep_records latency_limit limit list_replicas local max_in_flight
    max_parallel max_step maximum measure method model name namespace no_causes
    num_gpus num_workloads openai output_dir pause_autoscalers payload
    per_device precision preset queue ready_timeout redis_url repeats repetitions
    replica_header resume rule run_dir run_seconds scale seconds service set set_replicas
    shared_prefix start step_time template threshold timeout tolerance tolerate_failures
    tool tune until warm_limit warmup workload_type
"""
# What texts may name; anything else in such brackets is foreign.
SETTINGS = frozenset(_NAMES.split())
# Settings that have another name as an option, and as an argument.
_OPTIONS = {"keep": "no-wait"}
_ARGUMENTS = {"keep": "keep=True"}
_SETTING = re.compile(rf"<({'|'.join(SETTINGS)})>")


def as_options(text: str) -> str:
    """Return the text with settings as options of commands."""
    return _SETTING.sub(lambda setting: f"--{option_name(setting[1])}", text)


def option_name(setting: str) -> str:
    """Return what a setting is called as an option."""
    return _OPTIONS.get(setting, setting.replace("_", "-"))


def as_arguments(text: str) -> str:
    """Return the text with settings as arguments of Python."""
    return _SETTING.sub(lambda setting: _ARGUMENTS.get(setting[1], setting[1]), text)
