"""No secret leaves with an error report, and none stands in the log."""

import json
import logging
from collections.abc import Iterator

import pytest
import sentry_sdk
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from duduclaw.lib import reporting
from duduclaw.lib.env import BadSetting
from duduclaw.lib.logs import JsonFormatter

SECRET = "ddc_live_" + "0123456789abcdef" * 2


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Envelope]]:
    """What would have gone to Sentry."""
    envelopes: list[Envelope] = []

    class Kept(Transport):
        def capture_envelope(self, envelope: Envelope) -> None:
            envelopes.append(envelope)

    real = sentry_sdk.init
    monkeypatch.setattr(
        sentry_sdk, "init", lambda **options: real(**options, transport=Kept, default_integrations=False)
    )
    yield envelopes
    real()


def test_T51_a_report_holds_no_secret(sent: list[Envelope]) -> None:
    reporting.start("https://public@sentry.invalid/1")
    sentry_sdk.add_breadcrumb(message=f"called with Bearer {SECRET}")
    try:
        raise ValueError(f"bad key {SECRET}")
    except ValueError as error:
        sentry_sdk.capture_exception(error)
    text = "".join(item.serialize().decode() for item in sent)
    assert "bad key" in text
    assert SECRET not in text


def test_an_address_that_is_none_stops_the_start() -> None:
    with pytest.raises(BadSetting, match="SENTRY_DSN"):
        reporting.start("nonsense")


def test_T51_a_log_line_is_one_json_object_without_secrets() -> None:
    try:
        raise ValueError(f"trace of {SECRET}")
    except ValueError as error:
        trace = (type(error), error, error.__traceback__)
    record = logging.LogRecord("x", logging.ERROR, __file__, 1, "two\nlines and %s", (SECRET,), trace)
    line = JsonFormatter().format(record)
    assert "\n" not in line
    assert SECRET not in line
    assert json.loads(line)["text"].startswith("two\nlines")
    assert json.loads(line)["trace"].startswith("Traceback")
