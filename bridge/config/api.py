"""The settings of the provider's REST side."""

from __future__ import annotations

import re
from string import Formatter
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from bridge.config.fields import FilePath, Section, has_host, secret_of
from bridge.errors import SettingsError

ListEndpoint = Literal["sports", "regions", "leagues", "competitors", "markets", "all-markets"]
PLACEHOLDERS: Final[dict[ListEndpoint, frozenset[str]]] = {
    "sports": frozenset({"language"}),
    "regions": frozenset({"language", "sportId"}),
    "leagues": frozenset({"language", "sportId"}),
    "competitors": frozenset({"language", "sportId"}),
    "markets": frozenset({"language", "eventId", "sportId"}),
    "all-markets": frozenset({"eventId", "sportId"}),
}
"""What the values of an endpoint's query parameters may depend on."""


def _is_code(value: str) -> str:
    """What can be a part of a path, once it is quoted."""
    if not value.isprintable() or value.isspace() or set(value) & set("/?#\\") or value in (".", ".."):
        raise ValueError("must be a language code: it goes into a path, between two slashes")
    return value


Language = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(_is_code)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Days = Annotated[float, Field(gt=0, le=20_000, allow_inf_nan=False)]
"""At most 54 years, which is for ever: no moment is before 1970."""


def placeholders(value: str) -> set[str]:
    """The names in braces, as `{language}`; `{{` is a brace. Raises ValueError for any other brace."""
    found = set[str]()
    for _, name, spec, conversion in Formatter().parse(value):
        if name is not None:
            if spec or conversion:
                raise ValueError("a placeholder is a name in braces, and nothing else")
            found.add(name)
    return found


class ApiSettings(Section):
    """The provider's REST side: translations and currencies (interface, "Endpoints")."""

    base_url: str | None = None
    """The provider's base address, http(s). The paths of the endpoints are added to it."""
    token: SecretStr | None = None
    """The bearer token, a JWT."""
    token_file: FilePath | None = None
    """A file that holds it; read at each request, so that it can be renewed meanwhile."""
    requests_per_second: Annotated[float, Field(ge=0.001, le=10_000, allow_inf_nan=False)] = 5
    """At most so many, evenly; fewer for a while after the provider has said 429."""
    concurrency: Annotated[int, Field(ge=1, le=100)] = 4
    """So many requests are under way at once."""
    timeout_seconds: Annotated[float, Field(ge=0.1, le=3600, allow_inf_nan=False)] = 30
    """An answer may take so long."""
    max_answer_bytes: Annotated[int, Field(ge=1 << 20, le=1 << 30)] = 64 << 20
    """An answer may be so large, unpacked."""
    max_clock_skew_seconds: Annotated[float, Field(ge=2, le=366 * 86_400, allow_inf_nan=False)] = 300
    """A run ends when the provider's clock is further from ours."""
    attempts: Annotated[int, Field(ge=1, le=100)] = 6
    """So often one request is tried, when the provider is overloaded, in trouble, or not to be reached."""
    languages: Annotated[tuple[Language, ...], Field(min_length=1, strict=False)] = ("en",)
    """The languages that are asked for, by the codes that go into the paths."""
    language_keys: dict[str, Language] = Field(default={})
    """What the provider calls a language in a map of all of them → its code. Other keys are kept."""
    refresh_hours: Annotated[float, Field(gt=0, le=480_000, allow_inf_nan=False)] = 24
    """After so long a run asks about everything anew, not only about what is new."""
    recent_days: Days = 3
    """Such a run asks about what bets of the last so many days mention."""
    keep_days: Days = 30
    """What belongs to an event is removed so long after a bet last mentioned it."""
    max_left_out_share: Share = 0.1
    """A run fails when more than this share of the things that it asks about fails."""
    max_shrink_share: Share = 0.1
    """A list that has lost more than this share removes nothing until a second full run says so too."""
    query: dict[ListEndpoint, dict[str, str | list[str]]] = Field(default={})
    """Query parameters to add, by the endpoint; with several values, again and again. A value may depend on
    what is asked, by `PLACEHOLDERS`.
    """
    template_ids: Literal["query", "path", "body"] = "query"
    """Where the templates endpoints take what is asked for: in the query, at the end of the path
    (`/1,2,3`, after the sport where there is one), or as a JSON object in the body of the GET.
    """
    selection_ids_parameter: str = "selectionIds"
    """What the selection templates call the collection of ids, in the query or the body."""
    sport_id_parameter: str = "sportId"
    """What the market type templates call the sport."""
    market_type_ids_parameter: str = "marketTypeIds"
    """What the market type templates call the collection of ids."""
    collections: Literal["repeated", "commas"] = "repeated"
    """How a collection is given in the query: the parameter again and again, or once with commas."""
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

    @field_validator("query")
    @classmethod
    def _depends_on_what_is_asked(
        cls, value: dict[ListEndpoint, dict[str, str | list[str]]]
    ) -> dict[ListEndpoint, dict[str, str | list[str]]]:
        for endpoint, parameters in value.items():
            known = PLACEHOLDERS[endpoint]
            for name, given in parameters.items():
                for text in [given] if isinstance(given, str) else given:
                    try:
                        others = placeholders(text) - known
                    except ValueError as error:
                        raise ValueError(f"{endpoint}.{name}: {error}; a brace itself is `{{{{`") from None
                    if others:
                        raise ValueError(
                            f"{endpoint}.{name}: there is no {{{min(others)}}} to put there, only "
                            f"{', '.join(f'{{{one}}}' for one in sorted(known))}; a brace itself is `{{{{`"
                        )
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
