"""The public names, for type checkers; `__init__.py` loads them when they are used first."""

from scaletest.api.client import Client as Client
from scaletest.api.result import Result as Result
from scaletest.api.result import load_run as load_run
from scaletest.api.validation import Plan as Plan
from scaletest.api.validation import validate as validate
from scaletest.model.errors import AgentLost as AgentLost
from scaletest.model.errors import InvalidValue as InvalidValue
from scaletest.model.errors import NoDevice as NoDevice
from scaletest.model.errors import NoServer as NoServer
from scaletest.model.errors import NotPassed as NotPassed
from scaletest.model.errors import QueueFull as QueueFull
from scaletest.model.errors import RequestsFailed as RequestsFailed
from scaletest.model.errors import ScaletestError as ScaletestError
from scaletest.model.errors import UndeclaredQueue as UndeclaredQueue
from scaletest.model.errors import Unreachable as Unreachable
from scaletest.model.errors import UsageError as UsageError
from scaletest.model.errors import WaitTimeout as WaitTimeout
from scaletest.model.record import Outcome as Outcome
from scaletest.model.record import Record as Record
from scaletest.model.record import Reply as Reply
from scaletest.model.verdict import Verdict as Verdict
from scaletest.model.workload import Device as Device
from scaletest.model.workload import Workload as Workload

__version__: str
