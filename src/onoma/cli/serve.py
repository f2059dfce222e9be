"""`onoma serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from onoma.cli.shared import BackendName, Device


def serve(
    model: Annotated[
        list[str] | None,
        typer.Option(help="Model to serve: a folder, a hub name or embedded, or NAME=MODEL; may be repeated."),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any that is free.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, help="Processes; they share the weights of ONNX models.")] = 1,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Inference threads of a process; by default all cores, divided.")
    ] = None,
    queue_tokens: Annotated[
        int, typer.Option(min=1, help="Tokens that may wait; beyond that, requests get 429.")
    ] = 131_072,
    batch_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens that a thread reads at once; by default by backend.")
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds after which a request gets 504.")] = 60.0,
    shutdown_timeout: Annotated[
        float, typer.Option(min=1.0, help="Seconds that accepted requests have when the service is to end.")
    ] = 30.0,
    max_body_bytes: Annotated[int, typer.Option(min=1, help="Bytes of a request.")] = 4 << 20,
    max_texts: Annotated[int, typer.Option(min=1, help="Texts of a request.")] = 1_024,
    max_characters: Annotated[int, typer.Option(min=1, help="Characters of all texts of a request.")] = 500_000,
    max_labels: Annotated[int, typer.Option(min=1, help="Labels of a request.")] = 1_000,
    max_label_characters: Annotated[
        int, typer.Option(min=1, help="Characters of all labels, descriptions and examples of a request.")
    ] = 100_000,
    max_candidate_characters: Annotated[
        int, typer.Option(min=1, help="Characters of all texts of a request for candidates.")
    ] = 20_000,
    api_key_file: Annotated[
        Path | None,
        typer.Option(help="File with the API key that clients must send; or set ONOMA_API_KEY. By default none."),
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], typer.Option(help="What is logged, as JSON lines on stderr.")
    ] = "info",
    backend: BackendName = "auto",
    device: Device = None,
) -> None:
    """Serve models over HTTP, with a page to try them at /. It listens on this machine only, unless --host is given."""
    try:
        from onoma.serve.run import Address
        from onoma.serve.run import serve as run
    except ModuleNotFoundError as error:
        from onoma.errors import OnomaError

        raise OnomaError(f'the service needs {error.name}. Fix: pip install "onoma[serve]"') from None
    from onoma.serve.settings import Limits, ServeSettings, read_api_key
    from onoma.serve.sources import parse_sources

    limits = Limits(
        max_body_bytes, max_texts, max_characters, max_labels, max_label_characters, max_candidate_characters
    )
    settings = ServeSettings(limits, queue_tokens, timeout, shutdown_timeout, batch_tokens, read_api_key(api_key_file))
    sources = parse_sources(model or [], backend, device)
    run(sources, Address(host, port), settings, workers=workers, threads=threads, log_level=log_level)
