"""The stdio bridge as a process: what stands on stdout, what it does without a server, how it ends."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from agents.actions.keys import revoke_key
from agents.models import Capabilities, Key
from mcp import registry, stdio
from mcp.models import AuditRow, Session
from tests.build import Company, company
from tests.live import Live, serving
from tests.services import ROOT
from tests.stack import clean_env, free_port, wait_until
from tests.tools import Door, peek, send_message, sent
from tests.wire_clients import StdioPeer, stdio_client

U2028 = "\u2028"


@pytest.fixture
def people(mcp_server: Live) -> Company:
    return company()


@pytest.fixture
def bridge(mcp_server: Live, people: Company) -> Iterator[StdioPeer]:
    """The owner's bridge, initialized."""
    with stdio_client(mcp_server.url, people.tokens["owner"]) as client:
        client.initialize()
        yield client


def lines_are_frames(client: StdioPeer) -> bool:
    """Every line of stdout is one JSON-RPC object."""
    return all(json.loads(line)["jsonrpc"] == "2.0" and line.endswith(b"\n") for line in client.lines)


def test_the_bridge_imports_no_django() -> None:
    check = "import sys, mcp.stdio; print([name for name in sys.modules if name.startswith(('django', 'channels'))])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


def test_manage_py_runs_the_bridge_before_django() -> None:
    check = (
        "import runpy, sys; sys.argv = ['manage.py', 'mcp_stdio', 'extra']\n"
        "try: runpy.run_path('manage.py', run_name='__main__')\n"
        "except SystemExit as end: print(end.code, 'django' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "2 False"


def test_P06_every_line_of_stdout_is_a_frame_with_debug_logs_and_a_late_server(
    valkey: str, transactional_db: None
) -> None:
    people, port = company(), free_port()
    with (
        registry.temporarily(send_message()),
        stdio_client(f"http://127.0.0.1:{port}", people.tokens["owner"], LOG_LEVEL="DEBUG") as client,
    ):
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        first = client.begin("initialize", params)
        second = client.begin("tools/list")
        wait_until(lambda: any(b"no connection" in line for line in client.errors), "a first try")
        with serving(port):
            assert client.answer(first)["result"]["serverInfo"]["name"] == "duduclaw"
            assert "send_message" in {tool["name"] for tool in client.answer(second)["result"]["tools"]}
            text = f"one\ntwo{U2028}three"
            result = client.call("send_message", {"to": "#ops", "text": text})["result"]
            assert result["isError"] is False and sent() == [text]
            assert client.call("no\nsuch" + U2028)["error"]["message"] == f"Unknown tool: no\nsuch{U2028}"
        client.process.stdin.close()
        assert client.wait_ended() == 0
    assert lines_are_frames(client) and client.errors
    assert people.tokens["owner"].encode() not in b"".join(client.errors)


def test_P06_a_server_that_never_answers_ends_it_with_1_and_an_error_for_each_request() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with stdio_client(url, "ddc_test_" + "0" * 32, DUDUCLAW_CONNECT_SECONDS="1") as client:
        number = client.begin("initialize", {})
        assert client.wait_ended() == 1
        assert client.answer(number)["error"]["code"] == stdio.UNREACHABLE
    assert lines_are_frames(client)
    assert b"DUDUCLAW_URL" in b"".join(client.errors)


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({}, "set DUDUCLAW_MCP_API_KEY"),
        ({"DUDUCLAW_MCP_API_KEY": "x", "DUDUCLAW_CONNECT_SECONDS": "soon"}, "no number"),
    ],
)
def test_wrong_usage_is_2(env: dict[str, str], says: str) -> None:
    argv = [sys.executable, str(ROOT / "manage.py"), "mcp_stdio"]
    kept = {name: value for name, value in clean_env(ROOT).items() if not name.startswith("DUDUCLAW_")}
    done = subprocess.run(argv, env={**kept, **env}, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, "") and says in done.stderr


def test_a_bad_key_ends_it_with_1_and_names_the_setting(mcp_server: Live) -> None:
    with stdio_client(mcp_server.url, "ddc_test_" + "0" * 32) as client:
        number = client.begin("initialize", {})
        assert client.wait_ended() == 1
        assert "DUDUCLAW_MCP_API_KEY" in client.answer(number)["error"]["message"]


def test_stdin_may_be_closed_at_once_and_answers_still_come(mcp_server: Live, people: Company) -> None:
    with stdio_client(mcp_server.url, people.tokens["owner"]) as client:
        numbers = [client.begin("ping") for _ in range(20)]
        client.process.stdin.close()
        assert client.wait_ended() == 0
        assert all(client.answer(number)["result"] == {} for number in numbers)


def test_lines_end_at_0x0A_only_and_a_bad_one_is_answered_here(bridge: StdioPeer) -> None:
    frame = '{"jsonrpc":"2.0","id":"a\u2028\u0085b","method":"ping"}'
    bridge.send_bytes(frame.encode() + b"\r\n\n")
    assert bridge.answer("a\u2028\u0085b")["result"] == {}
    bridge.send_bytes(b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}\n')
    assert bridge.answer(None)["error"]["code"] == -32700
    assert bridge.request("ping")["result"] == {}
    bridge.send_bytes(b'{"jsonrpc":"2.0","id":"big","method":"ping","params":{"x":"' + b"y" * 1_100_000 + b'"}}\n')
    assert bridge.answer("big")["error"]["code"] == -32600
    bridge.send_bytes(b"{\n")
    bridge.wait(lambda: sum("id" in f and f["id"] is None for f in bridge.frames) == 2, "the server's parse error")
    assert bridge.request("ping")["result"] == {}


def test_calls_are_recorded_as_stdio_with_the_round_of_the_environment(mcp_server: Live, people: Company) -> None:
    with (
        registry.temporarily(peek()),
        stdio_client(mcp_server.url, people.tokens["owner"], DUDUCLAW_TASK_ID=" ") as client,
    ):
        assert "result" in client.call("peek")
        assert client.call("tasks_create", {"title": "x"})["result"]["isError"] is True
    assert {row.transport for row in AuditRow.objects.all()} == {"stdio"}
    assert Session.objects.get().transport == "stdio"


def test_a_revoked_key_ends_it_with_1_and_errors_for_what_waits(
    mcp_server: Live, people: Company, bridge: StdioPeer
) -> None:
    door = Door()
    with registry.temporarily(door.tool(slow=True)):
        number = bridge.begin_call("wait_inside")
        door.wait_entered()
        revoke_key(Key.objects.system().get(prefix=people.tokens["owner"][:17]), by=people.who("operator"))
        assert bridge.wait_ended() == 1
        assert bridge.answer(number)["error"]["code"] == stdio.LINK_LOST
        door.open.set()
    assert b"revoked" in b"".join(bridge.errors)


def test_it_survives_a_restart_of_the_server(valkey: str, transactional_db: None) -> None:
    people, port = company(), free_port()
    door = Door()
    with stdio_client(f"http://127.0.0.1:{port}", people.tokens["owner"]) as client:
        with serving(port), registry.temporarily(door.tool(slow=True)):
            client.initialize()
            client.names()
        client.wait(lambda: any(b"lost" in line for line in client.errors), "the loss")
        held = client.begin("ping")
        Capabilities.objects.filter(agent=people.owner).update(denied_tools=["tasks_*"])
        with serving(port):
            assert client.answer(held)["result"] == {}
            client.wait_changed(1)
            assert not [name for name in client.names() if name.startswith("tasks_")]
            Capabilities.objects.filter(agent=people.owner).update(denied_tools=[])
            client.wait_changed(2)
            assert "tasks_list" in client.names()
            assert client.call("tasks_list")["result"]["isError"] is False
            latest = Session.objects.order_by("opened_at").last()
            assert latest is not None and latest.client == "test 1"
    assert lines_are_frames(client)
    answers = [frame["id"] for frame in client.frames if "method" not in frame]
    assert len(answers) == len(set(answers)) == 6


def test_while_the_server_is_away_requests_are_answered_and_the_end_of_stdin_ends_it(
    valkey: str, transactional_db: None
) -> None:
    people, port = company(), free_port()
    url = f"http://127.0.0.1:{port}"
    with stdio_client(url, people.tokens["owner"], DUDUCLAW_CONNECT_SECONDS="1") as client:
        with serving(port):
            client.initialize()
        wait_until(lambda: any(b"lost" in line for line in client.errors), "the loss")
        assert client.request("ping")["error"]["code"] == stdio.UNREACHABLE
        last = client.begin("ping")
        client.process.stdin.close()
        assert client.wait_ended() == 0
        assert client.answer(last)["error"]["code"] == stdio.UNREACHABLE


def test_a_call_in_flight_when_the_link_is_lost_gets_an_error_and_is_not_sent_again(
    valkey: str, transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duduclaw.web.DRAIN", 0.0)
    people, port, door = company(), free_port(), Door()
    with (
        registry.temporarily(door.tool(slow=True)),
        stdio_client(f"http://127.0.0.1:{port}", people.tokens["owner"]) as client,
    ):
        with serving(port) as live:
            client.initialize()
            number = client.begin_call("wait_inside", {"text": "once"})
            door.wait_entered()
            live.server.should_exit = True
            error = client.answer(number)["error"]
            assert (error["code"], "not known" in error["message"]) == (stdio.LINK_LOST, True)
            door.open.set()
        with serving(port):
            assert client.request("ping")["result"] == {}
    assert AuditRow.objects.filter(tool="wait_inside").count() == 1


def test_addresses() -> None:
    assert stdio.address("http://host:8000") == "ws://host:8000/ws/mcp/"
    assert stdio.address("https://host/") == "wss://host/ws/mcp/"
    assert stdio.address("host:8000") == "ws://host:8000/ws/mcp/"
    assert stdio.address("wss://host/ws/mcp/?key=x") == "wss://host/ws/mcp/"
