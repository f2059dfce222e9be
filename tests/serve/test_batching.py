"""The queue: what shares a batch, who waits for whom, what happens to failures. The model is a function here."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.entities import Entity
from onoma.errors import OnomaError
from onoma.reading import Section
from onoma.serve.batching import Batcher, Job, Request, _Group, estimate_tokens
from onoma.serve.errors import ApiError
from onoma.serve.metrics import Metrics

LONG = "long " * 400


class FakeReader:
    """Finds the first word of each text; fails at "poison"; waits for `gate` and remembers its batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.gate = threading.Event()
        self.gate.set()

    def with_options(self, **options: bool) -> FakeReader:
        return self

    def sections(self, texts: Sequence[str], times: object) -> Iterator[Section]:
        self.gate.wait(10)
        self.batches.append(list(texts))
        for place, text in enumerate(texts):
            if "poison" in text:
                raise RuntimeError(text)
            if "invalid" in text:
                raise OnomaError("this label is not known")
            if text.startswith("long"):
                for part in range(3):
                    yield Section(place, [], (part + 1) * 5, False)
            word = text.split()[0]
            yield Section(place, [Entity(0, len(word), word, "word")], len(text), True, len(text.split()))


@asynccontextmanager
async def batcher(threads: int = 1, budget: int = 100, queue: int = 10_000) -> AsyncIterator[Batcher]:
    one = Batcher(threads, budget, queue, Metrics())
    one.start()
    try:
        yield one
    finally:
        await asyncio.to_thread(one.close)


def request(reader: Any, *texts: str, **options: Any) -> Request:
    return Request(reader, texts, **options)


async def answers(*requests: Request) -> list[list[str]]:
    for one in requests:
        await asyncio.wait_for(one.done, 10)
    return [[entity.text for own in one.entities for entity in own] for one in requests]


def run(test: Callable[[], Any]) -> None:
    asyncio.run(test())


def test_texts_that_wait_share_a_batch_and_each_gets_its_own_answer() -> None:
    async def test() -> None:
        reader = FakeReader()
        async with batcher() as queue:
            reader.gate.clear()
            requests = [request(reader, f"word{number} x") for number in range(9)]
            for one in requests:
                queue.submit(one)
            reader.gate.set()
            assert await answers(*requests) == [[f"word{number}"] for number in range(9)]
        assert len(reader.batches) <= 2  # the first text alone or not, then all that came meanwhile
        assert queue.pending == 0

    run(test)


def test_a_single_text_does_not_wait_for_others() -> None:
    async def test() -> None:
        reader = FakeReader()
        async with batcher() as queue:
            times = []
            for _ in range(20):
                start = time.perf_counter()
                one = request(reader, "alone")
                queue.submit(one)
                await answers(one)
                times.append(time.perf_counter() - start)
            assert min(times) < 0.005

    run(test)


def test_different_questions_never_share_a_batch() -> None:
    async def test() -> None:
        first, second = FakeReader(), FakeReader()
        async with batcher() as queue:
            first.gate.clear()
            requests = [request(first if number % 2 else second, f"w{number}") for number in range(10)]
            requests += [request(first, "w", floor=None) for _ in range(2)]
            for one in requests:
                queue.submit(one)
            first.gate.set()
            await answers(*requests)
        assert {text for batch in second.batches for text in batch} == {f"w{number}" for number in range(0, 10, 2)}

    run(test)


def test_batches_keep_to_the_budget() -> None:
    async def test() -> None:
        reader = FakeReader()
        async with batcher(budget=50) as queue:
            reader.gate.clear()
            requests = [request(reader, "word " * size) for size in (1, 9, 2, 8, 3, 7, 30, 5, 1, 1)]
            for one in requests:
                queue.submit(one)
            reader.gate.set()
            await answers(*requests)
        for batch in reader.batches:
            assert len(batch) == 1 or len(batch) * max(map(estimate_tokens, batch)) <= 50

    run(test)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=40), st.integers(0, 39), st.integers(20, 200))
def test_a_batch_holds_texts_of_nearest_length(lengths: list[int], first: int, budget: int) -> None:
    group = _Group()
    jobs = [Job(None, 0, "", length, number) for number, length in enumerate(lengths)]  # type: ignore[arg-type]
    for job in jobs:
        group.add(job)
    asked = jobs[first % len(jobs)]
    taken = group.take_around(asked, budget)
    assert asked in taken
    assert len(taken) == 1 or len(taken) * max(job.tokens for job in taken) <= budget
    left = [job for job in jobs if job not in taken]
    assert sorted(job.key for job in left) == group.keys
    low, high = min(job.key for job in taken), max(job.key for job in taken)
    assert not [job for job in left if low < job.key < high]  # neighbours by length


def test_the_oldest_text_is_always_in_the_next_batch() -> None:
    async def test() -> None:
        reader = FakeReader()
        async with batcher(budget=30) as queue:
            reader.gate.clear()
            start = request(reader, "start")
            queue.submit(start)
            odd = request(reader, "odd " * 25)  # of another length than all others
            queue.submit(odd)
            others = [request(reader, f"w{number}") for number in range(50)]
            for one in others:
                queue.submit(one)
            reader.gate.set()
            await answers(start, odd, *others)
        assert ["odd " * 25] in reader.batches[:3]

    run(test)


def test_a_failing_text_is_found_and_the_others_succeed() -> None:
    async def test() -> None:
        reader = FakeReader()
        async with batcher(budget=1_000) as queue:
            reader.gate.clear()
            queue.submit(request(reader, "first"))
            requests = [request(reader, "poison" if number == 7 else f"w{number}") for number in range(16)]
            for one in requests:
                queue.submit(one)
            reader.gate.set()
            for number, one in enumerate(requests):
                if number == 7:
                    with pytest.raises(ApiError) as caught:
                        await answers(one)
                    assert caught.value.status == 500
                    assert "poison" not in caught.value.message
                else:
                    assert await answers(one) == [[f"w{number}"]]
        assert queue.pending == 0
        assert len(reader.batches) <= 2 + 2 * 4 + 1  # halves, not one by one

    run(test)


def test_errors_of_the_user_are_answered_as_such() -> None:
    async def test() -> None:
        async with batcher() as queue:
            one = request(FakeReader(), "invalid")
            queue.submit(one)
            with pytest.raises(ApiError, match="not known") as caught:
                await answers(one)
            assert caught.value.status == 422

    run(test)


def test_long_texts_take_turns_with_short_ones() -> None:
    async def test() -> None:
        reader = FakeReader()
        async with batcher() as queue:
            long, short = request(reader, LONG), request(reader, "short")
            order: list[str] = []
            long.done.add_done_callback(lambda _: order.append("long"))
            short.done.add_done_callback(lambda _: order.append("short"))
            reader.gate.clear()
            queue.submit(long)
            queue.submit(short)
            reader.gate.set()
            assert await answers(long, short) == [["long"], ["short"]]
            assert order == ["short", "long"]
            assert queue.pending == 0

    run(test)


def test_a_full_queue_refuses_and_says_when_to_come_back() -> None:
    async def test() -> None:
        reader = FakeReader()
        async with batcher(queue=20) as queue:
            reader.gate.clear()
            accepted = [request(reader, "one two") for _ in range(6)]
            for one in accepted[:5]:
                queue.submit(one)
            with pytest.raises(ApiError) as caught:
                queue.submit(accepted[5])
            assert caught.value.status == 429
            assert int(caught.value.headers["Retry-After"]) >= 1
            reader.gate.set()
            assert await answers(*accepted[:5]) == [["one"]] * 5
            later = request(reader, "later")
            queue.submit(later)
            assert await answers(later) == [["later"]]
            with pytest.raises(ApiError, match="at most 20 are allowed") as caught:
                queue.submit(request(reader, "never " * 100))
            assert caught.value.status == 413

    run(test)


def test_cancelled_requests_leave_the_queue() -> None:
    async def test() -> None:
        reader = FakeReader()
        async with batcher() as queue:
            reader.gate.clear()
            first, cancelled, last = request(reader, "first"), request(reader, *["gone"] * 30), request(reader, "last")
            queue.submit(first)
            await asyncio.sleep(0.05)
            queue.submit(cancelled)
            queue.submit(last)
            before = queue.pending
            queue.cancel(cancelled)
            assert queue.pending < before
            reader.gate.set()
            assert await answers(first, last) == [["first"], ["last"]]
            assert queue.pending == 0
        assert not any("gone" in batch for batch in reader.batches)

    run(test)


def test_what_was_accepted_is_read_when_the_service_ends() -> None:
    async def test() -> None:
        reader = FakeReader()
        async with batcher() as queue:
            reader.gate.clear()
            requests = [request(reader, f"w{number}") for number in range(30)]
            for one in requests:
                queue.submit(one)
            closing = asyncio.create_task(asyncio.to_thread(queue.close))
            await asyncio.sleep(0.05)
            with pytest.raises(ApiError, match="shutting down"):
                queue.submit(request(reader, "late"))
            reader.gate.set()
            assert await answers(*requests) == [[f"w{number}"] for number in range(30)]
            await closing

    run(test)


@given(st.lists(st.sampled_from(["submit", "cancel", "wait"]), max_size=60), st.integers(1, 3))
def test_tokens_are_never_lost(steps: list[str], threads: int) -> None:
    async def test() -> None:
        reader = FakeReader()
        async with batcher(threads, budget=40, queue=400) as queue:
            open_requests: list[Request] = []
            for number, step in enumerate(steps):
                if step == "submit":
                    texts = ["w " * (number % 7 + 1), "poison" if number % 5 == 0 else "x", LONG[: 10 * number]]
                    one = request(reader, *filter(str.strip, texts))
                    with suppress(ApiError):
                        queue.submit(one)
                        open_requests.append(one)
                elif step == "cancel" and open_requests:
                    queue.cancel(open_requests.pop(0))
                else:
                    await asyncio.sleep(0)
            for one in open_requests:
                await asyncio.wait([one.done], timeout=10)
                assert one.done.done()
        assert queue.pending == 0
        assert queue._waiting == 0
        assert not queue._groups

    run(test)
