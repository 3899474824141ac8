"""axe-core in the browser: what a page withholds from people who see little or use a keyboard."""

from pathlib import Path
from typing import Any

from hack.browser import Browser
from hack.kubernetes import NotBuilt, tool
from tests.conftest import missing

# The others, minor and moderate, are advice.
REFUSED = ("serious", "critical")
# A page's policy forbids inline scripts; what comes through the DevTools protocol it does not see.
# preload: style sheets of other origins, which no page has.
RUN = "axe.run(document, {resultTypes: ['violations'], preload: false}).then(r => r.violations)"


def assert_accessible(browser: Browser) -> None:
    """Refuse the page that is open if axe-core finds a serious or critical violation in it."""
    if not _evaluate(browser, "'axe' in window"):
        _evaluate(browser, _source())
    violations = [row for row in _evaluate(browser, RUN) if row["impact"] in REFUSED]
    assert not violations, "\n".join(map(_described, violations))


def _source() -> str:
    try:
        return Path(tool("axe", "axe.min.js")).read_text("utf-8")
    except NotBuilt as error:
        missing(str(error))


def _evaluate(browser: Browser, expression: str) -> Any:
    wanted = {"expression": expression, "awaitPromise": True, "returnByValue": True}
    answer = browser.execute_cdp_cmd("Runtime.evaluate", wanted)
    assert "exceptionDetails" not in answer, answer["exceptionDetails"]
    return answer["result"].get("value")


def _described(violation: dict[str, Any]) -> str:
    elements = "".join(
        f"\n  {node['html'][:200]}\n    {node['failureSummary']}" for node in violation["nodes"][:5]
    )
    return f"{violation['id']} ({violation['impact']}): {violation['help']}{elements}"
