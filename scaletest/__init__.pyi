"""The public names, for type checkers; `__init__.py` loads them when they are used first."""

from scaletest.api.result import Result as Result
from scaletest.api.result import load_run as load_run
from scaletest.api.validation import Plan as Plan
from scaletest.api.validation import validate as validate
from scaletest.model.errors import NotPassed as NotPassed
from scaletest.model.verdict import Verdict as Verdict

__version__: str
