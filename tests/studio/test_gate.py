"""Who may speak to the studio: what a stranger, another page and another browser find at its gate."""

import asyncio

import pytest

from hedgerow.studio.gate import FORM, LARGEST, Gate
from hedgerow.studio.server import check_door, hosts
from refusals import refused

PORT = 5555
ORIGIN = f"http://127.0.0.1:{PORT}"
SECRET = "a value of a private row"


async def behind(scope, receive, send):
    """An application that reads its form, and fails where it is told to."""
    if scope["path"] == "/fails":
        raise ValueError(SECRET)
    while scope["method"] == "POST" and (await receive())["more_body"]:
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


class Asking:
    """Requests to a gate, byte for byte as we like them."""

    def __init__(self, *hosts):
        self.gate = Gate(behind, PORT, hosts)
        self.token = self.gate.address.partition("token=")[2]

    def __call__(self, path, method="GET", *, base=None, query="", parts=(b"",), **headers):
        sent, left = [], list(parts)
        given = {"host": f"127.0.0.1:{PORT}"} | {name.replace("_", "-"): value for name, value in headers.items()}

        async def receive():
            return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": (self.gate.base if base is None else base) + path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        }
        asyncio.run(self.gate(scope, receive, send))
        self.headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        self.body = b"".join(message["body"] for message in sent[1:]).decode()
        return sent[0]["status"]

    def enter(self):
        """The cookie that the address gives."""
        assert self("/open", query=f"token={self.token}") == 200
        return self.headers["set-cookie"].partition(";")[0]


@pytest.fixture
def ask():
    return Asking()


def test_nobody_enters_without_the_token(ask):
    assert ask("/table") == 403
    assert ask("/open") == 403
    assert ask("/open", query="token=guessed") == 403
    assert ask("/table", cookie=f"hedgerow-{PORT}=guessed") == 403
    assert not ask.gate.is_opened


def test_a_token_lets_one_browser_in_and_is_used_up(ask):
    cookie = ask.enter()
    kept = ask.headers["set-cookie"]
    assert all(mark in kept for mark in ("HttpOnly", "SameSite=Strict", f"Path={ask.gate.base}"))
    assert ask.token not in kept
    assert ask("/table", cookie=cookie) == 200
    assert ask("/open", query=f"token={ask.token}") == 403
    assert "set-cookie" not in ask.headers


def test_cookies_of_others_lock_nobody_out(ask):
    cookie = ask.enter()
    name = cookie.partition("=")[0]
    for given in (f"{name}=another; {cookie}", f"{cookie}; {name}=another", f"a b[=1; {cookie}", f'x="; {cookie}'):
        assert ask("/table", cookie=given) == 200
    for given in (f"{name}=another", f"x{cookie}", f"{cookie}x", name, "=", ""):
        assert ask("/table", cookie=given) == 403


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"localhost:{PORT}"])
def test_no_other_name_is_answered_and_uses_no_token_up(ask, host):
    assert ask("/open", query=f"token={ask.token}", host=host) == 421
    cookie = ask.enter()
    assert ask("/table", cookie=cookie, host=host) == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:9", f"https://127.0.0.1:{PORT}", "null"])
def test_no_other_page_makes_the_browser_ask(ask, origin):
    cookie = ask.enter()
    assert ask("/table", cookie=cookie, origin=origin) == 403
    assert ask("/table", "POST", cookie=cookie, origin=origin, content_type=FORM) == 403
    assert ask("/table", "POST", cookie=cookie, content_type=FORM) == 403
    for site in ("cross-site", "same-site"):
        assert ask("/table", cookie=cookie, sec_fetch_site=site) == 403
    assert ask("/table", "POST", cookie=cookie, origin=ORIGIN, content_type=FORM) == 200


def test_only_forms_of_a_size_pass(ask):
    own = {"cookie": ask.enter(), "origin": ORIGIN}
    assert ask("/table", "POST", content_type="application/json", **own) == 415
    assert ask("/table", "POST", content_type=FORM, content_length=str(LARGEST + 1), **own) == 413
    assert ask("/table", "POST", content_type=FORM, parts=[b"x" * LARGEST, b"x"], **own) == 413
    assert ask("/table", "PUT", content_type=FORM, **own) == 405


def test_no_path_leads_elsewhere(ask):
    cookie = ask.enter()
    for path in ("/table", "/../table", ""):
        assert ask(path, base="", cookie=cookie) == 403
    assert ask("/../../etc/passwd", cookie=cookie) == 200
    assert ask.body == "/../../etc/passwd"  # a name of a route, and none is called so


def test_every_answer_forbids_to_keep_it_and_to_run_anything_in_it(ask):
    cookie = ask.enter()
    for path, status in (("/table", 200), ("/fails", 500)):
        assert ask(path, cookie=cookie) == status
        assert ask.headers["cache-control"] == "no-store"
        assert "unsafe-inline" not in ask.headers["content-security-policy"]
    ask("/table")
    assert ask.headers["cache-control"] == "no-store"


def test_an_error_is_named_without_its_words(ask, capfd):
    assert ask("/fails", cookie=ask.enter()) == 500
    assert "ValueError" in ask.body
    assert SECRET not in ask.body
    assert capfd.readouterr() == ("", "")


def test_a_studio_in_a_container_answers_to_the_names_that_it_was_given_and_to_no_other():
    ask = Asking(*hosts("0.0.0.0", PORT, ["127.0.0.1:8000", "Studio.example"]))
    outside, inside = "127.0.0.1:8000", f"studio.example:{PORT}"
    assert ask.gate.address.startswith(f"http://{outside}/")
    for host in (
        f"127.0.0.1:{PORT}",
        f"0.0.0.0:{PORT}",
        "studio.example",
        "evil.example:8000",
        f"{outside}.evil.example",
    ):
        assert ask("/open", query=f"token={ask.token}", host=host) == 421
    assert ask("/open", query=f"token={ask.token}", host=outside) == 200
    cookie = ask.headers["set-cookie"].partition(";")[0]
    own = {"cookie": cookie, "content_type": FORM}
    for host in (outside, inside):
        assert ask("/table", cookie=cookie, host=host) == 200
        assert ask("/table", host=host) == 403
        assert ask("/table", "POST", host=host, origin=f"http://{host}", **own) == 200
        assert ask("/table", "POST", host=host, origin="http://evil.example", **own) == 403
    assert (
        ask("/table", "POST", host=outside, origin=f"http://{inside}", **own) == 403
    )  # one of its names is another site
    assert ask("/open", query=f"token={ask.token}", host=outside) == 403


def test_nobody_listens_beyond_this_machine_without_saying_by_which_names():
    check_door("127.0.0.1", [])
    check_door("::1", [])
    check_door("0.0.0.0", ["127.0.0.1:8000"])
    for address in ("0.0.0.0", "::", "192.0.2.7"):
        with refused("listening-without-names", "--host-name"):
            check_door(address, [])
    for name in ("*", "http://studio.example", "studio.example/path", "a b", "", "*.example", "x:99999999"):
        with refused("bad-host-name"):
            check_door("127.0.0.1", [name])
    with refused("bad-address"):
        check_door("localhost", [])


def test_on_this_machine_its_own_name_stays_beside_those_that_are_given():
    assert hosts("127.0.0.1", PORT, ["127.0.0.1:9000"]) == [f"127.0.0.1:{PORT}", "127.0.0.1:9000"]
    assert hosts("::1", PORT, []) == [f"[::1]:{PORT}"]
