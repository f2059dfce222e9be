"""A server with that part of the Hugging Face hub's interface that uploading and downloading a model takes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

Files = dict[str, bytes]


class FakeHub:
    """Repositories in memory: name → branch → files. All files are sent inside of commits, none as large files."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, Files]] = {}
        self.messages: list[str] = []
        self.downloaded: list[str] = []
        handler = type("Handler", (_Handler,), {"hub": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> FakeHub:
        Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def find(self, name: str, revision: str) -> tuple[str, Files] | None:
        """The commit and the files of a branch, which may also be named by its commit."""
        for branch, files in self.files.get(name, {}).items():
            commit = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
            if revision in (branch, commit):
                return commit, files
        return None

    def commit(self, name: str, branch: str, lines: list[dict[str, Any]]) -> None:
        files = dict(self.files[name][branch])
        for line in lines:
            value = line["value"]
            match line["key"]:
                case "header":
                    self.messages.append(value["summary"])
                case "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                case "deletedFile":
                    del files[value["path"]]
        self.files[name][branch] = files


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = unquote(urlsplit(self.path).path)
        if path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif path == "/api/repos/create":
            values = json.loads(body)
            name = f"{values['organization']}/{values['name']}"
            self.hub.files.setdefault(name, {"main": {}})
            self.answer({"url": f"{self.hub.address}/{name}"})
        elif found := re.fullmatch(r"/api/models/([\w-]+/[\w-]+)/(branch|preupload|commit)/(.+)", path):
            self.change(*found.groups(), body)
        else:
            self.answer({}, 404)

    def change(self, name: str, action: str, branch: str, body: bytes) -> None:
        match action:
            case "branch":
                self.hub.files[name].setdefault(branch, dict(self.hub.files[name]["main"]))
                self.answer({})
            case "preupload":
                paths = [one["path"] for one in json.loads(body)["files"]]
                rows = [{"path": path, "uploadMode": "regular", "shouldIgnore": False} for path in paths]
                self.answer({"files": rows})
            case "commit":
                self.hub.commit(name, branch, [json.loads(line) for line in body.splitlines()])
                commit, _ = self.hub.find(name, branch) or ("", {})
                self.answer({"commitUrl": f"{self.hub.address}/{name}/commit/{commit}", "commitOid": commit})

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if found := re.fullmatch(r"/api/models/([\w-]+/[\w-]+)(?:/(revision|tree)/(.+))?", path):
            name, action, revision = found.groups()
            self.describe(name, action, revision or "main")
        elif found := re.fullmatch(r"/([\w-]+/[\w-]+)/resolve/([^/]+)/(.+)", path):
            self.send(*found.groups())
        else:
            self.answer({}, 404)

    def do_HEAD(self) -> None:
        self.do_GET()

    def describe(self, name: str, action: str | None, revision: str) -> None:
        found = self.hub.find(name, revision)
        if found is None:
            missing = "RevisionNotFound" if name in self.hub.files else "RepoNotFound"
            self.answer({"error": "not found"}, 404, {"X-Error-Code": missing})
            return
        commit, files = found
        if action == "tree":
            rows = [
                {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
                for path, content in files.items()
            ]
            self.answer(rows)
        else:
            self.answer({"id": name, "sha": commit, "siblings": [{"rfilename": path} for path in files]})

    def send(self, name: str, revision: str, path: str) -> None:
        found = self.hub.find(name, revision)
        if found is None or path not in found[1]:
            self.answer({}, 404, {"X-Error-Code": "EntryNotFound"})
            return
        commit, files = found
        content = files[path]
        if self.command == "GET":
            self.hub.downloaded.append(path)
        etag = f'"{hashlib.sha1(content).hexdigest()}"'
        self.reply(content, 200, {"X-Repo-Commit": commit, "ETag": etag, "Accept-Ranges": "bytes"})

    def answer(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.reply(json.dumps(value).encode(), status, {"Content-Type": "application/json"} | (headers or {}))

    def reply(self, content: bytes, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
