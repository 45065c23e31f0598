"""Settings of the REST side."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr

from bridge_sandbox.provider.model import Model
from bridge_sandbox.provider.rest.routes import Endpoint
from bridge_sandbox.provider.world.words import LANGUAGES, Language


class RestPolicy(Model):
    """What the interface leaves open, and how this provider does it.

    Raises pydantic's ValidationError when something is wrong.
    """

    languages: Annotated[tuple[Language, ...], Field(min_length=1)] = LANGUAGES
    only_in_lists: frozenset[Language] = frozenset()
    """Languages that are missing where an endpoint gives all of them."""
    only_in_all: frozenset[Language] = frozenset()
    """Languages that are missing where an endpoint gives one of them."""
    language_keys: dict[Language, str] = Field(default={})
    """What a language is called in a map of all languages, where not by its code."""
    event_members: Literal["names", "ids"] = "names"
    """Whether an event's sport, region, league and competitors have names, or ids alone."""
    secret: Annotated[SecretStr, Field(min_length=14)] = SecretStr("simulated-provider")
    """The key that tokens are signed with. The token library warns of one of fewer than 14 characters."""
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 10
    """Requests a second that are answered in the long run."""
    burst: Annotated[int, Field(ge=1)] = 10
    """Requests at once after a pause."""
    forbidden: frozenset[Endpoint] = frozenset()
    """Endpoints answered with 403."""
    odd_currencies: bool = False
    """Also list a currency without a symbol and one of an unknown type."""
    template_ids: Literal["query", "path"] = "query"
    """Where the templates take their parameters: in the path, the sport, if any, and ids with commas."""
    ids: str = "ids"
    """Parameter of the lists and of one language's markets: only what has one of these ids."""
    sport_id: str = "sportId"
    """Parameter of the market type templates, and of the leagues and competitors: only those of the sport."""
    selection_ids: str = "selectionIds"
    """Parameter of the selection templates."""
    market_type_ids: str = "marketTypeIds"
    """Parameter of the market type templates."""
