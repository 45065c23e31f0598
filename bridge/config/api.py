"""The settings of the provider's REST side."""

from __future__ import annotations

from collections.abc import Iterable
from string import Formatter
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from bridge.config.fields import (
    LONGEST_SECONDS,
    Address,
    FilePath,
    Name,
    Section,
    TlsSection,
    check_proxy,
    is_address,
    only_one,
)
from bridge.config.secrets import Form, Secret

Listed = Literal["sport", "region", "league", "competitor"]
"""The kinds of names with list endpoints."""
OfEvent = Literal["event", "market", "selection"]
"""The kinds that belong to an event, and are removed when no bet mentions it any more."""
Template = Literal["selection-template", "market-type-template"]
Kind = Literal[Listed, OfEvent, Template]

LISTED: Final[tuple[Listed, ...]] = get_args(Listed)
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

ListEndpoint = Literal["sports", "regions", "leagues", "competitors", "markets", "all-markets"]
Queries = dict[ListEndpoint, dict[str, str | list[str]]]
PLACEHOLDERS: Final[dict[ListEndpoint, frozenset[str]]] = {
    "sports": frozenset({"language"}),
    "regions": frozenset({"language", "sportId"}),
    "leagues": frozenset({"language", "sportId"}),
    "competitors": frozenset({"language", "sportId"}),
    "markets": frozenset({"language", "eventId", "sportId"}),
    "all-markets": frozenset({"eventId", "sportId"}),
}
"""The placeholders that the query parameters of an endpoint may contain."""


def _is_code(value: str) -> str:
    """Accept a code that can be a segment of a path once it is quoted."""
    if not value.isprintable() or value.isspace() or set(value) & set("/?#\\") or value in (".", ".."):
        raise ValueError("must be a language code that can stand between two slashes of a path")
    return value


Language = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(_is_code)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Days = Annotated[float, Field(gt=0, le=20_000, allow_inf_nan=False)]
"""At most 54 years, so that no time is before 1970."""


def placeholders(value: str) -> set[str]:
    """Return the names in braces, such as `{language}`. Raises ValueError for a brace not written `{{`."""
    found = set[str]()
    for _, name, spec, conversion in Formatter().parse(value):
        if name is not None:
            if spec or conversion:
                raise ValueError("a placeholder must be a name in braces")
            found.add(name)
    return found


class ApiAccess(TlsSection):
    """Where the REST side is, and how it is asked."""

    base_url: Annotated[Address, is_address("https://provider.example", "https?")] | None = Field(
        default=None, examples=["https://provider.example"]
    )
    """Its address, http(s), without the endpoints' paths. Both commands need it."""
    token: SecretStr | None = Field(default=None, examples=["…"])
    """The bearer token, a JWT. Both commands need it, or `token_file`."""
    token_file: FilePath | None = Field(default=None, examples=["/run/secrets/provider-token"])
    """A file with it, read before each request. While it cannot be read, the last token counts."""
    requests_per_second: Annotated[float, Field(ge=0.001, le=10_000, allow_inf_nan=False)] = 5
    """Highest rate of requests; lower for a while after a 429."""
    concurrency: Annotated[int, Field(ge=1, le=100)] = 4
    """Requests in flight at once."""
    timeout_seconds: Annotated[float, Field(ge=0.1, le=3600, allow_inf_nan=False)] = 30
    """How long an answer may take."""
    max_answer_bytes: Annotated[int, Field(ge=1 << 20, le=1 << 30)] = 64 << 20
    """Largest answer, uncompressed. Memory holds only what is kept of it."""
    max_clock_skew_seconds: Annotated[float, Field(ge=2, le=LONGEST_SECONDS, allow_inf_nan=False)] = 300
    """Exit 9 when the provider's clock (`Date`) differs by more."""
    attempts: Annotated[int, Field(ge=1, le=100)] = 6
    """Attempts per request that fails."""
    proxy: Annotated[Address, AfterValidator(check_proxy)] = Address("env")
    """`env` (`HTTPS_PROXY` and the like), `none`, or an address."""

    @model_validator(mode="after")
    def _token_is_given_once(self) -> Self:
        only_one(self, "token")
        return self

    @property
    def secret(self) -> Secret:
        """The token."""
        return Secret("api.token", self.token, self.token_file, Form.BEARER)

    def secrets(self) -> Iterable[Secret]:
        """Return the token, if there is one."""
        return [self.secret] if self.secret.is_given else []


class ApiNames(Section):
    """Which names are fetched, how often, and how long they are kept."""

    languages: Annotated[tuple[Language, ...], Field(min_length=1, strict=False)] = ("en",)
    """Languages to fetch, by their codes in the endpoints' paths."""
    kinds: Annotated[tuple[Kind, ...], Field(min_length=1, strict=False)] = KINDS
    """Kinds of names to ask for: a snapshot is complete with these. Other kinds in their answers are
    published too.
    """
    language_keys: dict[str, Language] = Field(default={}, examples=[{"de-DE": "de"}])
    """The provider's names of languages, where an answer has all of them, as codes: `{ "de-DE" = "de" }`.
    Case does not matter; other names are kept.
    """
    refresh_hours: Annotated[float, Field(gt=0, le=480_000, allow_inf_nan=False)] = 24
    """How often a full run fetches all again; others fetch what is new."""
    recent_days: Days = 3
    """A full run fetches what bets of so many days mention. At most `keep_days`."""
    keep_days: Days = 30
    """An event's names go so long after its last bet. A first run reads the bets of these days."""
    keep_names: Literal["days", "bets"] = "days"
    """`days`: names go after `keep_days`; `bets`: nothing is removed, so that old bets keep their names."""
    max_left_out_share: Share = 0.1
    """A run fails when more of its lookups fail, and more than ten; else these are left out."""
    max_shrink_share: Share = 0.1
    """A list that has lost more removes nothing until a second full run in a row confirms it."""

    @field_validator("languages")
    @classmethod
    def _are_distinct(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value) or "all" in value:
            raise ValueError("must be distinct codes other than `all`")
        return value

    @field_validator("kinds")
    @classmethod
    def _are_in_order(cls, value: tuple[Kind, ...]) -> tuple[Kind, ...]:
        return tuple(kind for kind in KINDS if kind in value)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.recent_days > self.keep_days:
            raise ValueError(
                f"recent_days = {self.recent_days:g} must not be above keep_days = {self.keep_days:g}"
            )
        return self


class ApiForm(Section):
    """What the interface leaves open: the parameters of requests."""

    query: Queries = Field(default={}, examples=[{"leagues": {"active": "true"}}])
    """Query parameters to add, by endpoint: `sports`, `regions`, `leagues`, `competitors`, `markets`,
    `all-markets`. Values, or lists of them, may contain `{language}` (not in `all-markets`), `{eventId}`
    (`markets`, `all-markets`) and `{sportId}` (not in `sports`; lists are then fetched for each sport);
    braces are `{{` and `}}`. Example: `{ leagues = { active = "true", sport = "{sportId}" } }`.
    """
    template_ids: Literal["query", "path", "body"] = "query"
    """Where the templates take their ids: `query`, `path` (`…/selections/1,2,3`,
    `…/market-types/SPORT/1,2,3`), or `body` (JSON in the GET's body).
    """
    template_sport: Literal["query", "path", "body"] | None = Field(default=None, examples=["path"])
    """Where market type templates take the sport, if not like the ids."""
    selection_ids_parameter: Name = "selectionIds"
    """Parameter of the selection templates, in the query or body."""
    sport_id_parameter: Name = "sportId"
    """Parameter of the market type templates: the sport."""
    market_type_ids_parameter: Name = "marketTypeIds"
    """The same: the ids."""
    collections: Literal["repeated", "commas"] = "repeated"
    """Several values in the query: the parameter `repeated`, or one with `commas`."""

    @field_validator("query")
    @classmethod
    def _has_known_placeholders(cls, value: Queries) -> Queries:
        for endpoint, parameters in value.items():
            known = PLACEHOLDERS[endpoint]
            for name, given in parameters.items():
                for text in [given] if isinstance(given, str) else given:
                    try:
                        others = placeholders(text) - known
                    except ValueError as error:
                        raise ValueError(f"{endpoint}.{name}: {error}; write `{{{{` for a brace") from None
                    if others:
                        raise ValueError(
                            f"{endpoint}.{name}: {{{min(others)}}} is not available, only "
                            f"{', '.join(f'{{{one}}}' for one in sorted(known))}; write `{{{{` for a brace"
                        )
        return value


class ApiSettings(ApiAccess, ApiNames, ApiForm):
    """The provider's REST side: `bridge translations`, `bridge currencies`."""
