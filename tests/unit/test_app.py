"""What `bridge run` refuses to start with."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge import app
from bridge.config import FeedSettings, KafkaSettings, RegistrySettings, Settings
from bridge.errors import SettingsError

NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("scheme", "setting", "content", "said"),
    [
        ("http", "auth_value_file", None, r"BRIDGE_FEED__AUTH_VALUE_FILE: cannot read"),
        (
            "http",
            "auth_value_file",
            "",
            r"\(BRIDGE_FEED__AUTH_VALUE or BRIDGE_FEED__AUTH_VALUE_FILE\) is empty",
        ),
        ("https", "ca_file", None, r"BRIDGE_FEED__CA_FILE.*cannot use"),
    ],
)
def test_what_the_dial_will_need_is_looked_at_before_anything_else(
    scheme: str, setting: str, content: str | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a standby would pass for ready, and fail when it is needed."""
    monkeypatch.setattr(app, "_Service", lambda _: pytest.fail("it starts"))
    path = tmp_path / "file"
    if content is not None:
        path.write_text(content)
    feed = {"base_url": f"{scheme}://{NOWHERE}", "auth": "bearer" if scheme == "http" else "none"}
    settings = Settings(
        feed=FeedSettings.model_validate(feed | {setting: str(path)}),
        kafka=KafkaSettings(bootstrap_servers=NOWHERE),
        registry=RegistrySettings(url=f"http://{NOWHERE}"),
    )
    with pytest.raises(SettingsError, match=said):
        app.run(settings)
