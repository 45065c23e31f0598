"""What every setting, fault and parameter of the simulator is: frozen, without unknown fields."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Raises pydantic's ValidationError, which does not show what it was given."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
