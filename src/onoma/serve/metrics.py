"""Prometheus metrics. With several processes, all write into one folder, and any of them can answer for all."""

from __future__ import annotations

import os

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from onoma.serve.settings import METRICS_FOLDER_VARIABLE

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_TOKENS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)


class Metrics:
    """The metrics of one process."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()

        def histogram(name: str, text: str, buckets: tuple[float, ...], labels: tuple[str, ...] = ()) -> Histogram:
            return Histogram(name, text, labels, buckets=buckets, registry=registry)

        def counter(name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
            return Counter(name, text, labels, registry=registry)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(name, text, registry=registry, multiprocess_mode="livesum")

        self.requests = counter("onoma_requests", "Answered requests", ("endpoint", "status"))
        self.failures = counter("onoma_failures", "Requests that were not answered with 200", ("code",))
        self.cancelled = counter("onoma_cancelled_requests", "Requests whose client has gone before the answer")
        self.request_seconds = histogram("onoma_request_seconds", "Seconds per request", _SECONDS, ("endpoint",))
        self.texts = counter("onoma_texts", "Texts that were read")
        self.tokens = counter("onoma_tokens", "Tokens that were read")
        self.queue_tokens = gauge("onoma_queue_tokens", "Tokens, estimated, that were accepted and not read yet")
        self.queue_texts = gauge("onoma_queue_texts", "Texts that wait for a batch")
        self.queue_seconds = histogram("onoma_queue_seconds", "Seconds that a request waited for a batch", _SECONDS)
        self.batch_texts = histogram("onoma_batch_texts", "Texts per batch", _TEXTS)
        self.batch_tokens = histogram("onoma_batch_tokens", "Tokens per batch", _TOKENS)
        self.batch_seconds = histogram("onoma_batch_seconds", "Seconds per batch, decoding included", _SECONDS)
        self.tokenization_seconds = histogram("onoma_tokenization_seconds", "Words and tokens, per batch", _SECONDS)
        self.inference_seconds = histogram("onoma_inference_seconds", "The model, per batch", _SECONDS)
        self.batch_failures = counter("onoma_batch_failures", "Batches that failed and were divided")
        self.failed_texts = counter("onoma_failed_texts", "Texts that cannot be read")
        self.type_cache = counter("onoma_type_cache", "Types looked up in the cache of encoded types", ("result",))
        self.label_sets = counter("onoma_label_sets", "Label sets looked up in the cache of prepared ones", ("result",))

        self._endpoints: dict[tuple[str, int], tuple[Counter, Histogram]] = {}

    def count_request(self, endpoint: str, status: int, seconds: float) -> None:
        """Count an answered request; the metrics of an endpoint are looked up once, which takes most of the time."""
        key = endpoint, status
        if key not in self._endpoints:
            self._endpoints[key] = self.requests.labels(endpoint, str(status)), self.request_seconds.labels(endpoint)
        counter, histogram = self._endpoints[key]
        counter.inc()
        histogram.observe(seconds)

    def render(self) -> bytes:
        """The metrics of all processes, in the text format."""
        if METRICS_FOLDER_VARIABLE in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
            return generate_latest(registry)
        return generate_latest(self.registry)
