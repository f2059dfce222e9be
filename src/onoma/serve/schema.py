"""What requests and answers look like. Requests are validated by these classes, and OpenAPI is made of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.labels.parsing import Labels, Threshold
from onoma.serve.errors import ApiError

_STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, frozen=True)
_SHOWN_ERRORS = 3
_TEXT = "Maria Silva flew to Oslo."

Preset = Literal["precise", "balanced", "complete"]
Score = Annotated[float, Field(ge=0.0, le=1.0)]
Name = Annotated[str, StringConstraints(min_length=1)]


class Label(BaseModel):
    """A type with more than a name."""

    model_config = _STRICT

    name: Name
    description: str = ""
    examples: list[str] = Field(
        default_factory=list, description='Mentions ("aspirin"), or texts with marks ("take [[40 mg]] daily").'
    )
    threshold: Score | Preset | None = None

    def entity_type(self) -> EntityType:
        """The type that it describes."""
        return EntityType(self.name, self.description, tuple(self.examples), self.threshold)


class ExtractRequest(BaseModel):
    """Texts and what to look for."""

    model_config = ConfigDict(
        **_STRICT,
        json_schema_extra={
            "examples": [
                {"texts": [_TEXT], "labels": ["person", "city"]},
                {
                    "texts": ["She was given 300 mg of aspirin."],
                    "labels": [{"name": "drug", "description": "a medicine", "threshold": 0.3}, "dose"],
                    "threshold": {"dose": "complete"},
                    "overlap": "nested",
                },
            ]
        },
    )

    texts: str | list[str] = Field(description="One text, or several.")
    labels: Annotated[list[Name | Label], Field(min_length=1)] | Annotated[dict[Name, str], Field(min_length=1)] = (
        Field(description="Names, types with descriptions and examples, or name → description.")
    )
    threshold: Score | Preset | dict[str, Score | Preset] | None = Field(
        None, description="The score that an entity must reach; by default that of the model."
    )
    overlap: Literal["flat", "nested", "any"] = Field("flat", description="Whether mentions may contain each other.")
    model: str | None = Field(None, description="One of the models that are served; by default the first.")
    candidates: Score | None = Field(
        None, description="Also return the proposals with at least this score, before decoding."
    )

    def parsed_labels(self) -> Labels:
        """The labels as the library takes them."""
        if isinstance(self.labels, dict):
            return self.labels
        return [one if isinstance(one, str) else one.entity_type() for one in self.labels]

    def parsed_threshold(self) -> Threshold | None:
        """The threshold as the library takes it."""
        return self.threshold


class StreamRequest(ExtractRequest):
    """The same without candidates."""

    candidates: None = None


class FoundEntity(BaseModel):
    """A mention. Offsets count Unicode code points; `end` is exclusive."""

    start: int
    end: int
    text: str
    label: str
    score: float


class FoundCandidate(BaseModel):
    """A span with one of its labels, before decoding."""

    start: int
    end: int
    label: str
    score: float
    rank: float = Field(description="Spans are visited by falling rank.")
    preference: float = Field(description="Of a span, the label with the highest preference is reported.")
    threshold: float = Field(description="The score that it had to reach.")


class Usage(BaseModel):
    """What was read."""

    texts: int
    tokens: int


class ExtractResponse(BaseModel):
    """The entities of each text, in the order of the texts."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "results": [
                        [
                            {"start": 0, "end": 11, "text": "Maria Silva", "label": "person", "score": 0.97},
                            {"start": 20, "end": 24, "text": "Oslo", "label": "city", "score": 0.91},
                        ]
                    ],
                    "model": "embedded",
                    "usage": {"texts": 1, "tokens": 6},
                }
            ]
        }
    )

    results: list[list[FoundEntity]]
    model: str
    usage: Usage
    candidates: list[list[FoundCandidate]] | None = None
    thresholds: dict[str, float] | None = None


class StreamLine(BaseModel):
    """A line of a stream: a section of a text, the end, or an error."""

    text: int | None = None
    entities: list[FoundEntity] | None = None
    end: int | None = Field(None, description="Characters of the text that have been read.")
    is_last: bool | None = Field(None, description="Whether this is the last section of the text.")
    done: bool | None = Field(None, description="In the last line.")
    usage: Usage | None = None
    error: ErrorContent | None = None


class ModelResponse(BaseModel):
    """A model that is served, and the limits of the service."""

    name: str
    models: list[str]
    system: str
    labels: list[str] | None = Field(description="The labels that can be asked for; null: any.")
    threshold: float
    presets: dict[str, float]
    version: str
    limits: dict[str, int]


class ErrorContent(BaseModel):
    """What is wrong, and what to change."""

    code: str
    message: str


class ErrorResponse(BaseModel):
    """An answer other than 200."""

    error: ErrorContent


class Status(BaseModel):
    """Whether the service works."""

    status: str


def parse_request(body: bytes, kind: type[ExtractRequest] = ExtractRequest) -> ExtractRequest:
    """A request from its JSON text; an error without the values that the user sent."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise _invalid(error) from None
    except RecursionError:
        raise ApiError(400, "invalid_json", "the JSON is nested too deeply. Fix: send one object") from None


def _invalid(error: ValidationError) -> ApiError:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    if any(one["type"] == "json_invalid" for one in problems):
        reason = problems[0]["msg"].removeprefix("Invalid JSON: ")
        return ApiError(400, "invalid_json", f"the body is not valid JSON ({reason}). Fix: send a JSON object in UTF-8")
    shown = "; ".join(dict.fromkeys(map(_describe, problems[:_SHOWN_ERRORS])))
    more = f" and {len(problems) - _SHOWN_ERRORS:,} more problems" if len(problems) > _SHOWN_ERRORS else ""
    return ApiError(422, "invalid_request", f"{shown}{more}. Fix: see /docs for the form of a request")


def _describe(problem: Any) -> str:
    """Where a problem is, without names that the user gave."""
    known = {*ExtractRequest.model_fields, *Label.model_fields}
    place = ".".join(str(one) for one in problem["loc"] if isinstance(one, int) or one in known)
    message: str = problem["msg"]
    return f"{place or 'request'}: {message[:1].lower()}{message[1:]}"


def as_api_error(error: OnomaError) -> ApiError:
    """Bad labels or thresholds."""
    return ApiError(422, "invalid_request", str(error))
