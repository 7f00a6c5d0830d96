"""A stand-in for the Hugging Face Hub: a server on this machine with what huggingface_hub asks of it for a policy."""

import base64
import hashlib
import json
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKENS = {"hf_of_ann": "ann"}


@dataclass
class Repository:
    private: bool = False
    commits: list = field(default_factory=list)  # (oid, message, {path: bytes}), the latest last

    @property
    def latest(self):
        return self.commits[-1]

    def commit(self, message, files):
        before = dict(self.latest[2]) if self.commits else {}
        oid = hashlib.sha1(f"{len(self.commits)} {message}".encode()).hexdigest()
        self.commits.append((oid, message, {**before, **files}))
        return oid

    def at(self, revision):
        if revision == "main":
            return self.latest
        return next((commit for commit in self.commits if commit[0] == revision), None)


@dataclass
class Hub:
    endpoint: str
    repositories: dict = field(default_factory=dict)
    requests: list = field(default_factory=list)  # (method, path)


@contextmanager
def serving():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.hub = Hub(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _RefusedError(Exception):
    def __init__(self, status, code=None, message=None):
        self.status, self.code, self.message = status, code, message


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        path = self.path.partition("?")[0]
        hub = self.server.hub
        hub.requests.append((self.command, path))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        routes = [
            ("GET", r"/api/whoami-v2", self._whoami),
            ("POST", r"/api/repos/create", self._create),
            ("POST", r"/api/validate-yaml", self._validate_yaml),
            ("GET", r"/api/models/(\w+/[^/]+)", self._info),
            ("POST", r"/api/models/(\w+/[^/]+)/preupload/main", self._preupload),
            ("POST", r"/api/models/(\w+/[^/]+)/commit/main", self._commit),
            ("GET|HEAD", r"/(\w+/[^/]+)/resolve/([^/]+)/(.+)", self._file),
        ]
        try:
            for methods, pattern, answer in routes:
                match = re.fullmatch(pattern, path)
                if self.command in methods.split("|") and match:
                    answer(body, *match.groups())
                    return
            raise _RefusedError(404, message=f"{self.command} {path} is unknown to the stand-in")
        except _RefusedError as refused:
            headers = {"X-Error-Code": refused.code, "X-Error-Message": refused.message}
            self._send(b"{}", {k: v for k, v in headers.items() if v}, refused.status)

    do_HEAD = do_POST = do_GET  # noqa: N815

    def _whoami(self, body):
        user = self._user()
        if user is None:
            raise _RefusedError(401, message="Invalid credentials in Authorization header")
        self._json({"type": "user", "name": user, "orgs": []})

    def _create(self, body):
        asked = json.loads(body)
        owner = asked.get("organization") or self._user()
        self._require_owner(owner)
        repositories, repo = self.server.hub.repositories, f"{owner}/{asked['name']}"
        if repo in repositories:
            self._json({"url": f"{self.server.hub.endpoint}/{repo}"}, 409)
            return
        repositories[repo] = Repository(private=asked.get("visibility") == "private" or asked.get("private", False))
        repositories[repo].commit("initial commit", {".gitattributes": b"*.safetensors filter=lfs\n"})
        self._json({"url": f"{self.server.hub.endpoint}/{repo}"})

    def _validate_yaml(self, body):
        assert json.loads(body)["content"].startswith("---\n")
        self._json({"errors": [], "warnings": []})

    def _info(self, body, repo):
        oid, _, files = self._readable(repo).latest
        siblings = [{"rfilename": name} for name in files]
        self._json({"id": repo, "sha": oid, "private": self._readable(repo).private, "siblings": siblings})

    def _preupload(self, body, repo):
        self._require_owner(repo.partition("/")[0])
        files = [
            {"path": each["path"], "uploadMode": "regular", "shouldIgnore": False} for each in json.loads(body)["files"]
        ]
        self._json({"files": files})

    def _commit(self, body, repo):
        self._require_owner(repo.partition("/")[0])
        header, *files = (json.loads(line) for line in body.splitlines())
        content = {each["value"]["path"]: base64.b64decode(each["value"]["content"]) for each in files}
        oid = self._readable(repo).commit(header["value"]["summary"], content)
        self._json({"commitOid": oid, "commitUrl": f"{self.server.hub.endpoint}/{repo}/commit/{oid}", "success": True})

    def _file(self, body, repo, revision, name):
        commit = self._readable(repo).at(revision)
        if commit is None:
            raise _RefusedError(404, "RevisionNotFound")
        if name not in commit[2]:
            raise _RefusedError(404, "EntryNotFound")
        data = commit[2][name]
        self._send(data, {"X-Repo-Commit": commit[0], "ETag": f'"{hashlib.sha1(data).hexdigest()}"'})

    def _readable(self, repo):
        found = self.server.hub.repositories.get(repo)
        if found is None:
            raise _RefusedError(404 if self._user() else 401, "RepoNotFound")
        return found

    def _user(self):
        return TOKENS.get(self.headers.get("Authorization", "").removeprefix("Bearer "))

    def _require_owner(self, owner):
        if self._user() != owner:
            raise _RefusedError(403, message="you may not write here")

    def _json(self, content, status=200):
        self._send(json.dumps(content).encode(), {"Content-Type": "application/json"}, status)

    def _send(self, data, headers, status=200):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
