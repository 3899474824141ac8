"""References to Services."""

import pytest

from scaletest.cluster.service import parse_reference
from scaletest.model.errors import InvalidValue


@pytest.mark.parametrize("text", ["model", "svc/", "svc/Model", "svc/a:b:c", "svc/a b", "pod/a"])
def test_an_invalid_service_reference_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        parse_reference(text)
