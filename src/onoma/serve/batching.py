"""Batches across requests, by a budget of tokens and without a timer.

Accepted texts wait in one queue. Each inference thread takes the text that has waited longest, together with others of
similar length that are asked for the same types, up to a budget of tokens. So batches are small and fast when there is
little to do, and grow by themselves while the model is busy. A text beyond the budget is read section by section, and
goes back to the end of the queue after each of them, so that short texts need not wait for it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil

from onoma.candidates import TextCandidates, find_candidates
from onoma.entities import Entity
from onoma.errors import OnomaError
from onoma.reading import Reader, ReadingTimes, Section
from onoma.serve.errors import ApiError
from onoma.serve.metrics import Metrics

logger = logging.getLogger("onoma.serve")

CHARACTERS_PER_TOKEN = 4
"""Of ASCII text, for estimates; other characters count as one token each."""
SPECIAL_TOKENS = 2
MAX_RETRY_SECONDS = 60
_FIRST_RATE = 5_000.0  # tokens per second, before any have been counted
_RATE_SECONDS = 10.0  # over which the rate is averaged


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has: exact counts would cost a tokenisation before a text is accepted.

    >>> estimate_tokens("Tom flew to Paris."), estimate_tokens("马云在杭州。")
    (7, 8)
    """
    characters = len(text)
    if text.isascii():
        return characters // CHARACTERS_PER_TOKEN + 1 + SPECIAL_TOKENS
    others = min(characters, (len(text.encode("utf-8", "replace")) - characters + 1) // 2)  # two more bytes for most
    return others + (characters - others) // CHARACTERS_PER_TOKEN + SPECIAL_TOKENS


class Request:
    """The texts of one request on their way through the queue. Its methods are called in the event loop."""

    def __init__(
        self,
        reader: Reader,
        texts: Sequence[str],
        *,
        floor: float | None = None,
        extra_tokens: int = 0,
        listener: Callable[[int, Section], None] | None = None,
    ) -> None:
        """With `floor`, candidates are found as well; a `listener` gets every section at once, with its text.

        `extra_tokens` stand for work besides the texts, such as types that must be encoded.
        """
        self.reader, self.floor, self.listener = reader, floor, listener
        self.jobs = [Job(self, place, text, estimate_tokens(text)) for place, text in enumerate(texts)]
        self.pending = sum(job.tokens for job in self.jobs) + extra_tokens  # tokens that are not read yet, estimated
        self.extra_tokens = extra_tokens
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self.loop.create_future()
        self.entities: list[list[Entity]] = [[] for _ in texts]
        self.candidates: list[TextCandidates] = [TextCandidates() for _ in texts]
        self.tokens = 0
        self.cancelled = False
        self.accepted = 0.0
        self.started: float | None = None
        self._left = len(self.jobs)

    def add(self, place: int, found: Section | TextCandidates) -> None:
        """Take a result."""
        if self.done.done():
            return
        self.tokens += found.tokens
        if isinstance(found, TextCandidates):
            self.entities[place], self.candidates[place] = found.entities, found
        elif self.listener is not None:
            self.listener(place, found)
        else:
            self.entities[place] += found.entities
        if isinstance(found, TextCandidates) or found.is_last:
            self._left -= 1
            if not self._left:
                self.done.set_result(None)

    def fail(self, error: Exception) -> None:
        """Give up with an error."""
        if not self.done.done():
            self.done.set_exception(error)
            self.done.exception()  # it counts as retrieved, also if nobody waits any more


@dataclass(slots=True, eq=False)
class Job:
    """One text of a request."""

    request: Request
    place: int
    text: str
    tokens: int
    number: int = 0  # in the order of arrival
    is_waiting: bool = False
    sections: Iterator[Section] | None = None  # of a long text that has been read in part

    @property
    def key(self) -> tuple[int, int]:
        """By length, then by arrival."""
        return self.tokens, self.number


@dataclass(slots=True)
class _Group:
    """Waiting texts that may share a batch, sorted by length."""

    keys: list[tuple[int, int]] = field(default_factory=list)
    jobs: dict[int, Job] = field(default_factory=dict)  # by number

    def add(self, job: Job) -> None:
        insort(self.keys, job.key)
        self.jobs[job.number] = job

    def remove(self, job: Job) -> None:
        del self.keys[bisect_left(self.keys, job.key)]
        del self.jobs[job.number]

    def take_around(self, job: Job, budget: int) -> list[Job]:
        """Take a job with those of nearest length, as many as fit into the budget with padding."""
        start = bisect_left(self.keys, job.key)
        end, longest = start + 1, job.tokens
        while True:
            below = job.tokens - self.keys[start - 1][0] if start > 0 else None
            above = self.keys[end][0] - job.tokens if end < len(self.keys) else None
            if below is None and above is None:
                break
            is_above = below is None or (above is not None and above < below)
            size = max(longest, self.keys[end][0]) if is_above else longest
            if size * (end - start + 1) > budget:
                break
            longest = size
            start, end = (start, end + 1) if is_above else (start - 1, end)
        taken = [self.jobs.pop(number) for _, number in self.keys[start:end]]
        del self.keys[start:end]
        return taken


class Batcher:
    """The queue and the threads that read it."""

    def __init__(self, threads: int, batch_tokens: int, queue_tokens: int, metrics: Metrics) -> None:
        self.batch_tokens, self.queue_tokens, self.metrics = batch_tokens, queue_tokens, metrics
        self.pending = 0  # tokens, estimated, of accepted texts that are not read yet
        self._order: deque[Job] = deque()
        self._groups: dict[object, _Group] = {}
        self._count = self._waiting = 0
        self._closing = False
        self._changed = threading.Condition()
        self._rate, self._rate_time = _FIRST_RATE, 0.0
        self._threads = [
            threading.Thread(target=self._work, name=f"onoma-inference-{number}", daemon=True)
            for number in range(threads)
        ]

    # --- in the event loop

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether requests are accepted and all threads run."""
        return not self._closing and all(thread.is_alive() for thread in self._threads)

    def check_room(self, tokens: int = 1) -> None:
        """Raise an error if the queue has no room for so many tokens."""
        if tokens > self.queue_tokens:
            raise ApiError(
                413,
                "too_large",
                f"the request has about {tokens:,} tokens; at most {self.queue_tokens:,} are allowed (queue_tokens), "
                "so it could never be accepted. Fix: send the texts in several requests, or split long ones",
            )
        if self.pending + tokens > self.queue_tokens:
            raise ApiError(
                429,
                "overloaded",
                f"the queue is full ({self.pending:,} of {self.queue_tokens:,} tokens). Fix: try again later",
                {"Retry-After": str(self.retry_seconds())},
            )

    def retry_seconds(self) -> int:
        """After how many seconds about half of the queue will have been read."""
        return max(1, min(MAX_RETRY_SECONDS, ceil(self.pending / self._rate / 2)))

    def submit(self, request: Request) -> None:
        """Accept a request, or raise an error if the queue is full."""
        if self._closing:
            raise ApiError(503, "shutting_down", "the service is shutting down. Fix: try again", {"Retry-After": "1"})
        self.check_room(request.pending)
        request.accepted = time.monotonic()
        with self._changed:
            self.pending += request.pending
            for job in request.jobs:
                self._add(job)
            self._changed.notify(len(request.jobs))
        self._report()

    def cancel(self, request: Request) -> None:
        """Take what is left of a request out of the queue; a batch that is being read is finished."""
        with self._changed:
            request.cancelled = True
            for job in request.jobs:
                if job.is_waiting:
                    self._remove(job)
            self._settle(request, request.pending)
        self._report()

    def close(self) -> None:
        """Read what was accepted, then end the threads."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    # --- under the lock

    def _group_key(self, job: Job) -> object:
        return id(job.request.reader), job.request.floor

    def _add(self, job: Job) -> None:
        self._count += 1
        job.number, job.is_waiting = self._count, True
        self._order.append(job)
        self._waiting += 1
        self._groups.setdefault(self._group_key(job), _Group()).add(job)

    def _remove(self, job: Job) -> None:
        """Take a job out of its group; `_order` is cleaned when its turn comes."""
        key = self._group_key(job)
        self._groups[key].remove(job)
        if not self._groups[key].jobs:
            del self._groups[key]
        job.is_waiting = False
        self._waiting -= 1

    def _settle(self, request: Request, tokens: int) -> None:
        """Tokens of a request are read or given up."""
        tokens = min(tokens, request.pending)
        request.pending -= tokens
        self.pending -= tokens

    def _take(self) -> list[Job] | None:
        """The next batch; waits for one; None at the end."""
        with self._changed:
            while True:
                while self._order and not self._order[0].is_waiting:
                    self._order.popleft()
                if self._order:
                    return self._take_batch(self._order.popleft())
                if self._closing:
                    return None
                self._changed.wait()

    def _take_batch(self, first: Job) -> list[Job]:
        key = self._group_key(first)
        group = self._groups[key]
        if first.tokens > self.batch_tokens:
            group.remove(first)
            taken = [first]
        else:
            taken = group.take_around(first, self.batch_tokens)
        if not group.jobs:
            del self._groups[key]
        for job in taken:
            job.is_waiting = False
        self._waiting -= len(taken)
        return taken

    # --- in the inference threads

    def _work(self) -> None:
        while (batch := self._take()) is not None:
            started = time.monotonic()
            for request in {job.request for job in batch}:
                if request.started is None:
                    request.started = started
                    self.metrics.queue_seconds.observe(started - request.accepted)
            if batch[0].tokens > self.batch_tokens and batch[0].request.floor is None:
                self._run_section(batch[0])
            else:
                self._run(batch)
            self._report()

    def _run(self, jobs: list[Job]) -> None:
        """Read texts together. If that fails, find the text that is to blame by bisection."""
        jobs = [job for job in jobs if not job.request.cancelled]
        if not jobs:
            return
        times = ReadingTimes()
        start = time.monotonic()
        try:
            found = _read(jobs, times)
        except Exception as error:
            if len(jobs) > 1:
                self.metrics.batch_failures.inc()
                self._run(jobs[: len(jobs) // 2])
                self._run(jobs[len(jobs) // 2 :])
            else:
                self._fail(jobs[0], error)
            return
        self._count_batch(jobs, sum(one.tokens for one in found), times, time.monotonic() - start)
        self._finish(jobs, found)

    def _run_section(self, job: Job) -> None:
        """Read the next section of a long text."""
        request = job.request
        if request.cancelled:
            return
        times, start = ReadingTimes(), time.monotonic()
        try:
            if job.sections is None:
                reader = request.reader.with_options(parallel=True)
                job.sections = reader.sections([job.text], times)
            section = next(job.sections)
        except Exception as error:
            self._fail(job, error)
            return
        self._count_batch([job], section.tokens, times, time.monotonic() - start)
        if section.is_last:
            self._finish([job], [section])
            return
        _call(request, request.add, job.place, section)
        with self._changed:
            if not request.cancelled:
                self._add(job)

    def _finish(self, jobs: Sequence[Job], found: Sequence[Section | TextCandidates]) -> None:
        with self._changed:
            for job in jobs:
                self._settle(job.request, job.tokens + job.request.extra_tokens)
                job.request.extra_tokens = 0
        loop = jobs[0].request.loop
        _call_in(loop, lambda: _deliver(jobs, found))

    def _fail(self, job: Job, error: Exception) -> None:
        if not isinstance(error, OnomaError):
            self.metrics.failed_texts.inc()
            logger.error("a text cannot be read", extra={"fields": {"event": "failed_text"}}, exc_info=error)
        failure = _as_api_error(error, job.place)
        self.cancel(job.request)
        _call(job.request, job.request.fail, failure)

    def _count_batch(self, jobs: Sequence[Job], tokens: int, times: ReadingTimes, seconds: float) -> None:
        metrics = self.metrics
        metrics.batch_texts.observe(len(jobs))
        metrics.batch_tokens.observe(tokens)
        metrics.tokenization_seconds.observe(times.tokenizing)
        metrics.inference_seconds.observe(times.inference)
        metrics.batch_seconds.observe(seconds)
        estimated = sum(job.tokens for job in jobs)
        rate = estimated / max(seconds, 1e-4) * len(self._threads)
        share = min(1.0, seconds / _RATE_SECONDS)
        self._rate += share * (rate - self._rate)

    def _report(self) -> None:
        self.metrics.queue_tokens.set(self.pending)
        self.metrics.queue_texts.set(self._waiting)


def _read(jobs: Sequence[Job], times: ReadingTimes) -> Sequence[Section | TextCandidates]:
    """Read the texts of a batch, which have the same reader."""
    request, texts = jobs[0].request, [job.text for job in jobs]
    if request.floor is not None:
        return find_candidates(request.reader, texts, request.floor, times)
    return join_sections(request.reader.sections(texts, times))


def join_sections(sections: Iterator[Section]) -> list[Section]:
    """One section per text."""
    joined: list[Section] = []
    entities: list[Entity] = []
    for section in sections:
        entities += section.entities
        if section.is_last:
            joined.append(section._replace(entities=entities))
            entities = []
    return joined


def _deliver(jobs: Sequence[Job], found: Sequence[Section | TextCandidates]) -> None:
    for job, one in zip(jobs, found, strict=True):
        job.request.add(job.place, one)


def _as_api_error(error: Exception, place: int) -> ApiError:
    if isinstance(error, OnomaError):
        return ApiError(422, "invalid_request", str(error))
    return ApiError(
        500,
        "failed",
        f"text {place} cannot be read because of an error in the service. Fix: send the others without it",
    )


def _call(request: Request, function: Callable[..., None], *arguments: object) -> None:
    _call_in(request.loop, lambda: function(*arguments))


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:  # the loop is closed: nobody waits for the result
        logger.warning("a result came after the end of the event loop", extra={"fields": {"event": "late_result"}})
