# docker build --tag onoma . && docker run --publish 127.0.0.1:8000:8000 onoma
FROM python:3.11-slim AS build
WORKDIR /build
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir --upgrade pip
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
RUN /venv/bin/pip install --no-cache-dir --constraint constraints.txt '.[serve]'

FROM python:3.11-slim
COPY --from=build /venv /venv
RUN useradd --create-home --uid 10001 onoma
USER onoma
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1
EXPOSE 8000
HEALTHCHECK --start-period=30s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=5)"]
STOPSIGNAL SIGTERM
# Inside of the container it must listen on all addresses; what is published is chosen by `docker run`.
ENTRYPOINT ["onoma", "serve", "--host", "0.0.0.0"]
