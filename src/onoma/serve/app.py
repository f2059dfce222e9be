"""The application: `POST /v1/extract` and what belongs to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from onoma import __version__
from onoma.errors import OnomaError
from onoma.extractor import Extractor
from onoma.reading import Section
from onoma.serve import batching
from onoma.serve.batching import Batcher
from onoma.serve.body import read_body
from onoma.serve.documentation import operation, render_documentation
from onoma.serve.errors import ApiError, too_large
from onoma.serve.metrics import Metrics
from onoma.serve.middleware import Gate, note
from onoma.serve.models import Asked, Models
from onoma.serve.page_files import page_file
from onoma.serve.schema import (
    ErrorResponse,
    ExtractRequest,
    ExtractResponse,
    ModelResponse,
    Status,
    StreamLine,
    StreamRequest,
    as_api_error,
    parse_request,
)
from onoma.serve.settings import Limits, ServeSettings

JSON = "application/json"
NDJSON = "application/x-ndjson"
PAGE = Path(__file__).parent / "page"
NO_TELEMETRY: Any = dict.fromkeys(("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False)
"""FastAPI's own would record messages of exceptions, which might quote texts."""
Endpoint = Callable[[Request], Awaitable[Response]]
ErrorHandler = Callable[[Request, ApiError], Awaitable[Response]]
WARM_UP_TEXTS = ("Maria Silva flew to Oslo.", "马云在杭州。")


class SectionLines(asyncio.Queue[bytes]):
    """Sections as JSON lines, in the order of the texts; those of later texts wait until the texts before are read."""

    def __init__(self) -> None:
        super().__init__()
        self._current = 0
        self._waiting: dict[int, list[Section]] = {}

    def add(self, place: int, section: Section) -> None:
        """Add a section of a text."""
        self._waiting.setdefault(place, []).append(section)
        while ready := self._waiting.pop(self._current, []):
            for one in ready:
                line = {"text": self._current, "entities": one.entities, "end": one.end, "is_last": one.is_last}
                self.put_nowait(orjson.dumps(line) + b"\n")
            self._current += ready[-1].is_last


class Service:
    """Models, queue and metrics of one process."""

    def __init__(self, extractors: Mapping[str, Extractor], settings: ServeSettings) -> None:
        self.settings, self.metrics = settings, Metrics()
        self.models = Models(extractors, self.metrics)
        self.batcher = Batcher(
            self.models.threads,
            settings.batch_tokens or self.models.batch_tokens,
            settings.queue_tokens,
            self.metrics,
        )

    @property
    def limits(self) -> dict[str, int]:
        """The limits of a request, as `GET /v1/model` shows them."""
        return {**self.settings.limits.to_dict(), "queue_tokens": self.settings.queue_tokens}

    async def parse(self, request: Request, kind: type[ExtractRequest]) -> tuple[ExtractRequest, list[str], Asked]:
        """A request, its texts, and the model with its types; an ApiError if something is wrong with it."""
        body = await read_body(request, self.settings.limits.body_bytes, self.settings.timeout)
        self.batcher.check_room()  # a full queue is answered without the work of parsing
        asked = parse_request(body, kind)
        texts = [asked.texts] if isinstance(asked.texts, str) else asked.texts
        check_limits(asked, texts, self.settings.limits)
        try:
            return asked, texts, self.models.ask(asked)
        except OnomaError as error:
            raise as_api_error(error) from None

    async def run(self, request: Request, work: batching.Request) -> None:
        """Wait until all texts are read. If the client goes away or time runs out, they leave the queue."""
        self.batcher.submit(work)
        gone = asyncio.ensure_future(request.receive())
        both: set[asyncio.Future[Any]] = {gone, work.done}
        try:
            await asyncio.wait(both, timeout=self.settings.timeout, return_when=asyncio.FIRST_COMPLETED)
            if work.done.done():
                work.done.result()  # raises its error
            elif gone.done():
                self.metrics.cancelled.inc()
                raise ApiError(499, "cancelled", "the client has gone")
            else:
                raise timed_out(self.settings.timeout)
        finally:
            if not gone.done():
                gone.cancel()
            if not work.done.done():
                self.batcher.cancel(work)

    async def stream(self, request: Request, work: batching.Request, lines: SectionLines) -> AsyncIterator[bytes]:
        """The lines of a stream, as they are found; texts leave the queue if the client goes away."""
        deadline = asyncio.get_running_loop().time() + self.settings.timeout
        waiting: asyncio.Future[bytes] | None = None
        try:
            while not (work.done.done() and lines.empty()):
                waiting = asyncio.ensure_future(lines.get())
                left = deadline - asyncio.get_running_loop().time()
                both: set[asyncio.Future[Any]] = {waiting, work.done}
                await asyncio.wait(both, timeout=max(0.0, left), return_when=asyncio.FIRST_COMPLETED)
                if waiting.done():
                    yield waiting.result()
                elif not work.done.done():
                    raise timed_out(self.settings.timeout)
                waiting.cancel()
            work.done.result()
            yield orjson.dumps({"done": True, "usage": {"texts": len(work.jobs), "tokens": work.tokens}}) + b"\n"
        except ApiError as error:  # the status has been sent before
            self.metrics.failures.labels(error.code).inc()
            yield orjson.dumps(error.to_dict()) + b"\n"
        finally:
            if waiting is not None:
                waiting.cancel()
            if not work.done.done():
                self.metrics.cancelled.inc()
                self.batcher.cancel(work)

    def warm_up(self) -> None:
        """Load all models and run each once."""
        for extractor in self.models.extractors.values():
            extractor.load_all()
            labels = extractor.labels
            extractor.extract(WARM_UP_TEXTS, sorted(labels)[:1] if labels else ["person"])


def check_limits(asked: ExtractRequest, texts: list[str], limits: Limits) -> None:
    """Raise an error that names the limit that a request exceeds."""
    if len(texts) > limits.texts:
        raise too_large("there are too many texts", len(texts), limits.texts, "texts", "send several requests")
    characters = sum(map(len, texts))
    if characters > limits.characters:
        fix = "send the texts in several requests, or split long ones"
        raise too_large("the texts have too many characters", characters, limits.characters, "characters", fix)
    if asked.candidates is not None and characters > limits.candidate_characters:
        raise too_large(
            "the texts have too many characters for candidates",
            characters,
            limits.candidate_characters,
            "candidate_characters",
            "ask without candidates, or send fewer texts",
        )
    if len(asked.labels) > limits.labels:
        raise too_large("there are too many labels", len(asked.labels), limits.labels, "labels", "ask for fewer types")
    in_labels = sum(map(label_characters, asked.labels.items() if isinstance(asked.labels, dict) else asked.labels))
    if in_labels > limits.label_characters:
        what = "the labels, descriptions and examples have too many characters"
        raise too_large(what, in_labels, limits.label_characters, "label_characters", "shorten them")


def label_characters(label: Any) -> int:
    """The characters of a label in one of its forms."""
    if isinstance(label, str):
        return len(label)
    if isinstance(label, tuple):
        return sum(map(len, label))
    return len(label.name) + len(label.description) + sum(map(len, label.examples))


def timed_out(seconds: float) -> ApiError:
    """The error after the timeout."""
    return ApiError(
        504,
        "timeout",
        f"the request took more than {seconds:g} seconds. Fix: send fewer or shorter texts, or try later",
    )


def create_app(extractors: Mapping[str, Extractor], settings: ServeSettings | None = None) -> ASGIApp:
    """The application for some models by name; the first one is the default."""
    service = Service(extractors, settings or ServeSettings())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await asyncio.to_thread(service.warm_up)
        service.batcher.start()
        yield
        await asyncio.to_thread(service.batcher.close)

    app = FastAPI(
        title="Onoma",
        version=__version__,
        description="Name the entity types you want, in words; get back every mention, with exact offsets.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
        lifespan=lifespan,
    )
    app.state.service = service
    answer_error = _add_errors(app, service)
    extract = _add_extraction(app, service)
    _add_operations(app, service)
    _add_pages(app)
    direct = DirectRoute("/v1/extract", extract, answer_error, app)
    return Gate(direct, service.metrics, settings.api_key if settings else None)


class DirectRoute:
    """POST requests to one path, without the layers of FastAPI, which take longer than the rest of a short request."""

    def __init__(self, path: str, endpoint: Endpoint, answer_error: ErrorHandler, others: ASGIApp) -> None:
        self.path, self.endpoint, self.answer_error, self.others = path, endpoint, answer_error, others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; `others` answers those to other paths."""
        if scope["type"] != "http" or scope["path"] != self.path or scope["method"] != "POST":
            await self.others(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            response = await self.endpoint(request)
        except ApiError as error:
            response = await self.answer_error(request, error)
        except Exception:
            failed = ApiError(500, "internal", "the service failed. Fix: see its log")
            await (await self.answer_error(request, failed))(scope, receive, send)
            raise  # for the log
        await response(scope, receive, send)


def _add_errors(app: FastAPI, service: Service) -> ErrorHandler:
    @app.exception_handler(ApiError)
    async def api_error(request: Request, error: ApiError) -> Response:
        service.metrics.failures.labels(error.code).inc()
        return Response(orjson.dumps(error.to_dict()), error.status, error.headers, JSON)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        codes = {404: "not_found", 405: "method_not_allowed"}
        fix = "Fix: see /docs for what there is"
        failure = ApiError(error.status_code, codes.get(error.status_code, "error"), f"{error.detail}. {fix}")
        failure.headers.update(error.headers or {})
        return await api_error(request, failure)

    return api_error


def _add_extraction(app: FastAPI, service: Service) -> Endpoint:
    @app.post("/v1/extract", **operation(ExtractRequest, ExtractResponse, "Find entities"))
    async def extract(request: Request) -> Response:
        """Find the mentions of types in texts."""
        asked, texts, (model, reader, new_tokens) = await service.parse(request, ExtractRequest)
        work = batching.Request(reader, texts, floor=asked.candidates, extra_tokens=new_tokens)
        if texts:
            await service.run(request, work)
        if new_tokens:
            service.models.count_types()
        note(request.scope, model=model, texts=len(texts), tokens=work.tokens, labels=len(reader.types))
        service.metrics.texts.inc(len(texts))
        service.metrics.tokens.inc(work.tokens)
        usage = {"texts": len(texts), "tokens": work.tokens}
        answer: dict[str, Any] = {"results": work.entities, "model": model, "usage": usage}
        if asked.candidates is not None:
            answer["candidates"] = [one.candidates for one in work.candidates]
            answer["thresholds"] = work.candidates[0].thresholds if texts else {}
        return Response(orjson.dumps(answer), media_type=JSON)

    @app.post("/v1/extract/stream", **operation(StreamRequest, StreamLine, "Find entities, section by section", NDJSON))
    async def extract_stream(request: Request) -> Response:
        """The same for long texts: one JSON line per section, as soon as it is read."""
        _, texts, (model, reader, new_tokens) = await service.parse(request, StreamRequest)
        lines = SectionLines()
        work = batching.Request(reader, texts, extra_tokens=new_tokens, listener=lines.add)
        if texts:
            service.batcher.submit(work)
        else:
            work.done.set_result(None)
        note(request.scope, model=model, texts=len(texts), labels=len(reader.types))
        return StreamingResponse(service.stream(request, work, lines), media_type=NDJSON)

    return extract


def _add_operations(app: FastAPI, service: Service) -> None:
    errors: dict[int | str, dict[str, Any]] = {404: {"model": ErrorResponse}}

    @app.get("/v1/model", response_model=ModelResponse, responses=errors, summary="Describe a model")
    async def model(name: str | None = None) -> Response:
        """The default model, or the one with a name, and the limits of the service."""
        return Response(orjson.dumps({**service.models.describe(name), "limits": service.limits}), media_type=JSON)

    @app.get("/healthz", response_model=Status, responses={503: {"model": Status}}, summary="Is the process alive?")
    async def healthz() -> Response:
        """200 as long as the process works."""
        return _status(service.batcher.is_alive, "ok", "failed")

    @app.get("/readyz", response_model=Status, responses={503: {"model": Status}}, summary="Are requests accepted?")
    async def readyz() -> Response:
        """200 if the queue has room, else 503."""
        with suppress(ApiError):
            service.batcher.check_room()
            return _status(service.batcher.is_alive, "ready", "not ready")
        return _status(False, "", "overloaded")

    @app.get("/metrics", summary="Prometheus metrics", response_class=Response)
    async def metrics() -> Response:
        """The metrics of all processes in the text format of Prometheus."""
        return Response(await asyncio.to_thread(service.metrics.render), media_type=service.metrics.content_type)


def _status(good: bool, yes: str, no: str) -> Response:
    return Response(orjson.dumps({"status": yes if good else no}), 200 if good else 503, media_type=JSON)


def _add_pages(app: FastAPI) -> None:
    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def index() -> Response:
        return page_file(PAGE, "index.html")

    @app.get("/page/{name}", include_in_schema=False)
    async def page(name: str) -> Response:
        return page_file(PAGE, name)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(render_documentation(app.openapi()))
