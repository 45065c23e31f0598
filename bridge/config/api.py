"""The settings of the provider's REST side."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from bridge.config.fields import FilePath, Section, has_host, secret_of
from bridge.errors import SettingsError

ListEndpoint = Literal["sports", "regions", "leagues", "competitors", "markets", "all-markets"]
Language = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,35}$")]


class ApiSettings(Section):
    """The provider's REST side: translations and currencies (interface, "Endpoints")."""

    base_url: str | None = None
    """The provider's base address, http(s). The paths of the endpoints are added to it."""
    token: SecretStr | None = None
    """The bearer token, a JWT."""
    token_file: FilePath | None = None
    """A file that holds it; read at each request, so that it can be renewed meanwhile."""
    requests_per_second: Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False)] = 5
    """At most so many, evenly; fewer for a while after the provider has said 429."""
    concurrency: Annotated[int, Field(ge=1, le=100)] = 4
    """So many requests are under way at once."""
    timeout_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30
    """An answer may take so long."""
    attempts: Annotated[int, Field(ge=1, le=100)] = 6
    """So often one request is tried, when the provider is overloaded, in trouble, or not to be reached."""
    languages: Annotated[tuple[Language, ...], Field(min_length=1, strict=False)] = ("en",)
    """The languages that are asked for, by the codes that go into the paths."""
    language_keys: dict[str, Language] = Field(default={})
    """What the provider calls a language in a map of all of them → its code. Other keys are kept."""
    refresh_hours: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 24
    """After so long a run asks about everything anew, not only about what is new."""
    recent_days: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 3
    """Such a run asks about what bets of the last so many days mention."""
    keep_days: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30
    """What belongs to an event is removed so long after a bet last mentioned it."""
    query: dict[ListEndpoint, dict[str, str]] = Field(default={})
    """Query parameters to add, by the endpoint."""
    selection_ids_parameter: str = "selectionIds"
    """What the selection templates call the collection of ids, in the query."""
    sport_id_parameter: str = "sportId"
    """What the market type templates call the sport."""
    market_type_ids_parameter: str = "marketTypeIds"
    """What the market type templates call the collection of ids."""
    collections: Literal["repeated", "commas"] = "repeated"
    """How a collection is given: the parameter again and again, or once with commas."""
    proxy: str = "env"
    """`env` (HTTPS_PROXY and its kin), `none`, or the proxy's address."""
    ca_file: FilePath | None = None
    """Certificate authority of the provider, PEM, where it is not a public one."""

    @field_validator("base_url")
    @classmethod
    def _is_http(cls, value: str | None) -> str | None:
        if value is not None and not (re.match(r"^https?://[^/?#\s]+[^?#\s]*$", value) and has_host(value)):
            raise ValueError("must be an address such as https://provider.example, without a query")
        return value

    @field_validator("languages")
    @classmethod
    def _are_distinct(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value) or "all" in value:
            raise ValueError("must be different codes, and `all` is none")
        return value

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.token is not None and self.token_file is not None:
            raise ValueError("give one of token and token_file")
        if self.recent_days > self.keep_days:
            raise ValueError(
                f"recent_days = {self.recent_days:g} must not be above keep_days = {self.keep_days:g}"
            )
        return self

    def bearer(self) -> str:
        """The token as it is now; the file is read at each call. Raises SettingsError as `read_secret`."""
        if self.token is None and self.token_file is None:
            raise SettingsError(
                "api.token is not set. Set BRIDGE_API__TOKEN_FILE to the path of a file with the token, or "
                "BRIDGE_API__TOKEN."
            )
        return secret_of("BRIDGE_API__TOKEN", self.token, self.token_file)
