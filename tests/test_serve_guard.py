"""Who and what is let in: hosts, origins, tokens, links, bodies and rates."""

import http.client
import json
import re
import socket
import time

import pytest

pytest.importorskip("fastapi", reason="the service needs the extra serve")

from ocelad.serve.guard import LARGEST, Keys, Rates, allowed_hosts, is_local, read_token
from running import Running

TOKEN = "a-token-that-nobody-guesses"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
SAID = {"request_id": "r", "x": [1.0, 2.0], "z": [2.0, 1.0], "y": 1}
PATH = "/v1/streams/default/comparisons"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Running(data=tmp_path_factory.mktemp("guard") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("closed")
    (folder / "token.txt").write_text(f"{TOKEN}\n")
    with Running("--token-file", folder / "token.txt", data=folder / "data", wait=False) as running:
        running.wait()  # for which no token is needed
        yield running


def answered(service, method, path, headers=None, body=None):
    """The answer, with its headers."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=20)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    answer.content = answer.read()
    connection.close()
    return answer


def sent(service, data):
    """What a service says to bytes, until it closes the connection or has said a whole answer."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        said = b""
        while piece := connection.recv(1 << 16):
            said += piece
    return said


class TestPages:
    """What a page of another site can have a browser send."""

    @pytest.mark.parametrize(
        "host", ["evil.example", "127.0.0.1.evil.example:80", "", "localhost.", "[::2]", "127.0.0.2"]
    )
    def test_other_names_are_refused(self, service, host):
        answer = answered(service, "GET", "/v1/info", {"Host": host})
        assert (answer.status, json.loads(answer.content)["field"]) == (403, "Host")

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:8350", "[::1]:99"])
    def test_its_own_names_are_not(self, service, host):
        assert answered(service, "GET", "/v1/info", {"Host": host}).status == 200

    @pytest.mark.parametrize(
        "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://[", "file://"]
    )
    def test_other_origins_are_refused(self, service, origin):
        headers = {"Origin": origin, "Content-Type": "application/json"}
        answer = answered(service, "POST", PATH, headers, json.dumps(SAID))
        assert (answer.status, json.loads(answer.content)["field"]) == (403, "Origin")

    def test_its_own_page_may_ask(self, service):
        own = {"Origin": f"http://127.0.0.1:{service.port}", "Sec-Fetch-Site": "same-origin"}
        assert answered(service, "GET", "/v1/info", own).status == 200

    @pytest.mark.parametrize("dest", ["image", "script", "iframe", "empty", ""])
    def test_what_other_pages_embed_is_refused(self, service, dest):
        headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": dest}
        assert answered(service, "GET", "/v1/streams/default/export/answers.csv", headers).status == 403

    def test_a_link_may_be_followed(self, service):
        assert (
            answered(service, "GET", "/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}).status
            == 200
        )

    def test_scripts_are_those_of_the_page_alone(self, service):
        for path in ("/", "/page/app.js", "/nowhere", "/v1/info"):
            headers = answered(service, "GET", path).headers
            policy = dict(each.strip().split(" ", 1) for each in headers["Content-Security-Policy"].split(";"))
            assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
            assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
            assert headers["X-Content-Type-Options"] == "nosniff"
        page = answered(service, "GET", "/").content.decode()
        assert not re.search(r"<script(?! type=\"module\" src=\"/page/)|\son\w+=|style=|https?://", page)


class TestBodies:
    @pytest.mark.parametrize(
        ("headers", "status"),
        [
            ({"Content-Type": "text/plain"}, 415),
            ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
            ({"Content-Type": "multipart/form-data; boundary=x"}, 415),
            ({}, 415),
            ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, 415),
            ({"Content-Type": "application/json", "Content-Length": str(LARGEST + 1)}, 413),
            ({"Content-Type": "application/json", "Content-Length": "9" * 30}, 400),
            ({"Content-Type": "application/json", "Content-Length": "-1"}, 400),
        ],
    )
    def test_only_json_of_a_sane_size(self, service, headers, status):
        lines = {"Host": "127.0.0.1", "Content-Length": str(len(json.dumps(SAID))), **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        said = sent(service, f"POST {PATH} HTTP/1.1\r\n{head}\r\n{json.dumps(SAID)}".encode())
        assert int(said.split()[1]) == status

    def test_a_long_body_of_unknown_length(self, service):
        head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        piece = b"%x\r\n%s\r\n" % (1 << 20, b" " * (1 << 20))
        said = sent(service, f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + 9 * piece + b"0\r\n\r\n")
        assert int(said.split()[1]) == 413

    @pytest.mark.parametrize("name", ["Host", "Origin", "Content-Type", "Authorization"])
    def test_no_header_is_there_twice(self, service, name):
        own = {"Host": "localhost", "Origin": "http://localhost"}
        lines = [*own.items(), (name, own.get(name, "x")), (name, own.get(name, "x"))]
        head = "".join(f"{name}: {value}\r\n" for name, value in lines)
        assert int(sent(service, f"GET /v1/info HTTP/1.1\r\n{head}\r\n".encode()).split()[1]) == 400

    def test_get_has_no_body(self, service):
        for method in ("GET", "DELETE"):
            assert answered(service, method, PATH, {}, "{}").status == 400

    def test_nothing_of_this_was_taken(self, service):
        assert service.request("GET", PATH)[1]["comparisons"] == []


@pytest.mark.parametrize("path", ["/page/../guard.py", "/page/..%2fguard.py", "/page/vendor", "/page//etc/passwd",
                                  "/images/0", "/images/-1", "/images/..%2f..%2fx", "/page/app.py"])  # fmt: skip
def test_only_files_of_the_page_are_served(service, path):
    assert answered(service, "GET", path).status in (404, 422)


class TestTokens:
    def test_without_it_nothing_is_told(self, closed):
        for method, path in (("GET", "/"), ("GET", "/v1/info"), ("POST", PATH), ("GET", "/metrics"),
                             ("GET", "/openapi.json"), ("GET", "/v1/streams/default/events"),
                             ("GET", "/page/app.js"), ("POST", "/v1/links")):  # fmt: skip
            for given in ({}, {"Authorization": "Bearer"}, {"Authorization": f"Bearer {TOKEN[:-1]}"},
                          {"Authorization": f"Basic {TOKEN}"}, {"Authorization": "Bearer \xe9"}):  # fmt: skip
                answer = answered(closed, method, path, given)
                assert answer.status == 401
                assert answer.headers["WWW-Authenticate"] == "Bearer"
        for path in ("/healthz", "/readyz"):
            assert answered(closed, "GET", path).status == 200

    def test_with_it_all_is(self, closed):
        assert closed.request("POST", PATH, SAID, BEARER)[0] in (200, 201)
        assert closed.request("GET", "/v1/info", headers=BEARER)[1]["auth"]

    def test_a_link_is_good_for_one_cookie(self, closed):
        link = closed.request("POST", "/v1/links", headers=BEARER)[1]["link"]
        path = link.partition(f":{closed.port}")[2]
        welcome = answered(closed, "GET", path)
        cookie = welcome.headers["Set-Cookie"]
        assert welcome.status == 200
        assert {"httponly", "samesite=strict", "path=/"} <= {part.strip().lower() for part in cookie.split(";")}
        assert "secure" not in cookie.lower()
        value = {"Cookie": cookie.partition(";")[0]}
        assert answered(closed, "GET", "/v1/info", value).status == 200
        assert answered(closed, "GET", "/", value).status == 200
        assert answered(closed, "GET", path).status == 403  # for somebody else
        assert answered(closed, "GET", path, value).status == 200  # who is in already
        name, _, words = cookie.partition(";")[0].partition("=")
        nonce, until, seal = words.split(".")
        for forged in (
            f"{nonce}.{int(until) + 1}.{seal}",
            f"{nonce}.{until}.{seal[:-1]}x",
            f".{seal}",
            "",
            words[1:],
        ):
            assert answered(closed, "GET", "/v1/info", {"Cookie": f"{name}={forged}"}).status == 401

    def test_behind_tls_the_cookie_is_secure(self, closed):
        link = closed.request("POST", "/v1/links", headers=BEARER)[1]["link"]
        path = link.partition(f":{closed.port}")[2]
        cookie = answered(closed, "GET", path, {"X-Forwarded-Proto": "https"}).headers["Set-Cookie"]
        assert "secure" in cookie.lower()

    def test_the_link_that_is_printed_works(self, closed):
        printed = re.search(r"http://\S+login\?code=\S+", closed.words()).group()
        assert answered(closed, "GET", printed.partition(f":{closed.port}")[2]).status == 200

    def test_a_cookie_ends(self, monkeypatch):
        keys = Keys(TOKEN)
        cookie = keys.redeem(keys.new_code())
        headers = {b"cookie": f"{keys.cookie}={cookie}".encode()}
        assert keys.let_in(headers)
        assert not Keys(TOKEN + "!").let_in(headers)
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 31 * 86400)
        assert not keys.let_in(headers)

    def test_without_a_token_nobody_else_can_come(self, tmp_path):
        for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
            running = Running("--host", host, data=tmp_path / "data", wait=False)
            assert running.process.wait(30) == 1
            assert "--token-file" in running.words()
        assert not (tmp_path / "data").exists()

    @pytest.mark.parametrize(
        "words", ["", "short", "two words of which one is long", "ümlaut" * 5, "a" * 20 + "\nb"]
    )
    def test_tokens_that_will_not_do(self, tmp_path, words):
        (tmp_path / "token").write_text(words, encoding="utf-8")
        with pytest.raises(ValueError, match="--token-file must have a token"):
            read_token(tmp_path / "token")


def test_too_many_requests_are_told_to_wait(tmp_path):
    with Running("--rate", 5, data=tmp_path / "data", wait=False) as running:
        for _ in range(600):  # it may be asked five times a second meanwhile
            try:
                running.request("GET", "/healthz")
                break
            except OSError:
                time.sleep(0.1)
        time.sleep(1.2)
        found = [answered(running, "GET", "/healthz") for _ in range(12)]
        assert [answer.status for answer in found[:4]] == [200] * 4
        refused = [answer for answer in found if answer.status == 429]
        assert len(refused) >= 4
        assert all(answer.headers["Retry-After"] == "1" for answer in refused)


def test_rates_are_per_client(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    rates = Rates(3.0)
    assert [rates.take("a") for _ in range(5)] == [True, True, True, False, False]
    assert rates.take("b")
    now[0] = 0.7
    assert [rates.take("a") for _ in range(3)] == [True, True, False]


def test_hosts():
    assert [is_local(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost")] == [True] * 5
    assert [is_local(host) for host in ("0.0.0.0", "::", "10.0.0.1", "example.org", "")] == [False] * 5
    assert allowed_hosts("0.0.0.0", ()) is None
    assert allowed_hosts("0.0.0.0", ("label.example.org",)) >= {"label.example.org", "127.0.0.1"}
    assert "evil.example" not in allowed_hosts("127.0.0.1", ())
