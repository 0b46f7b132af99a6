"""What every part of a result has in common."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

Count = Annotated[int, Field(ge=0)]
Nanoseconds = Annotated[int, Field(ge=0)]
MeanNanoseconds = Annotated[float, Field(ge=0)]
Joules = Annotated[float, Field(ge=0)]
Watts = Annotated[float, Field(ge=0)]


class Result(BaseModel):
    """Base of every part of a result: frozen, no unknown fields, no NaN.

    A subclass lists in `derived` the properties that follow from its fields. They are written
    out with the fields, and ignored when a written result is read again.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    derived: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _drop_derived(cls, data: Any) -> Any:
        if isinstance(data, dict):
            return {key: value for key, value in data.items() if key not in cls.derived}
        return data

    @model_serializer(mode="wrap")
    def _with_derived(self, fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = fields(self)
        written.update((name, getattr(self, name)) for name in self.derived)
        return {name: value for name, value in written.items() if value is not None}
