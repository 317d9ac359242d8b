"""The shape of the house, read from its files: sizes, words that must not stand there, and who may import what."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

from django.apps import apps

from duduclaw.lib.owned import OwnedManager
from mcp.tools import FAMILIES
from tests.services import ROOT

LARGEST_FILE, LONGEST_FUNCTION = 400, 60
LISTING = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
NOT_OURS = {".git", ".venv", ".venv-sdk", "node_modules", "var", "__pycache__"}
# What may follow `.objects` on a tenant's model, beside its own questions that take the principal first.
OPEN = {"for_who", "system", "create", "bulk_create", "get_or_create"}
OUTSIDE = {
    "aiohttp", "asyncio", "channels", "docker", "ftplib", "http", "httpx", "multiprocessing", "os", "redis", "requests",
    "select", "selectors", "smtplib", "socket", "ssl", "subprocess", "threading", "urllib", "urllib3", "websockets",
}  # fmt: skip
NOTES = re.compile(r"(?:#|//|/\*|<!--|\{#)\s*(?:TODO|FIXME|XXX|HACK)\b|\b(?:TODO|FIXME)[:(]")
PLACES = re.compile(
    r"/work/|/tmp/w\b|/farm/|https?://[\w.-]*(?:pypi|pythonhosted|npmjs|npmmirror|golang|crates)\b|registry\.npm"
)
UNSAFE = re.compile(
    r"mark_safe|SafeString|\|\s*safe\b|autoescape off|<style|\sstyle\s*=|\son[a-z]+\s*=\s*[\"']|javascript:"
    r"|<script(?![^>]*\ssrc=)",
    re.IGNORECASE,
)
LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.*)$", re.MULTILINE)


@cache
def files() -> tuple[Path, ...]:
    """Every file of the tree that git keeps or would keep; all of them where there is no git."""
    listed = subprocess.run(LISTING, cwd=ROOT, capture_output=True, text=True, check=False)
    names = listed.stdout.splitlines() if listed.returncode == 0 else map(str, ROOT.rglob("*"))
    found = (ROOT / name for name in names)
    return tuple(sorted(path for path in found if path.is_file() and not NOT_OURS & set(path.relative_to(ROOT).parts)))


@cache
def texts() -> tuple[tuple[str, str], ...]:
    """(path, text) of every text file but this one, which names what it forbids."""
    read = ((path, path.read_bytes()) for path in files() if path != Path(__file__).resolve())
    return tuple((str(path.relative_to(ROOT)), body.decode()) for path, body in read if b"\0" not in body)


@cache
def parsed() -> tuple[tuple[str, str, ast.Module], ...]:
    """(path, text, syntax tree) of our Python, without migrations."""
    ours = ((name, text) for name, text in texts() if name.endswith(".py") and "/migrations/" not in name)
    return tuple((name, text, ast.parse(text)) for name, text in ours)


def modules(*, tests: bool = True) -> Iterator[tuple[str, str, ast.Module]]:
    """The parsed modules, with those of tests or without."""
    for name, text, tree in parsed():
        if tests or not ("tests" in Path(name).parts or name == "conftest.py"):
            yield name, text, tree


def imported(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """(dotted name, line) of every import, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def test_no_file_is_too_long() -> None:
    long = {name: text.count("\n") for name, text, _ in modules() if text.count("\n") > LARGEST_FILE}
    assert long == {}


def test_no_function_is_too_long() -> None:
    found = [
        f"{name}:{node.lineno} {node.name} has {length} lines"
        for name, _, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or 0) - node.lineno + 1) > LONGEST_FUNCTION
    ]
    assert found == []


def takes_a_principal(model: Any, method: str) -> bool:
    """Whether a manager's method asks first for whom."""
    parameters = list(signature(getattr(model.objects, method, int)).parameters)
    return parameters[:1] in (["who"], ["by"])


def test_nothing_is_read_of_a_tenant_without_saying_for_whom() -> None:
    tenants = {model.__name__: model for model in apps.get_models() if isinstance(model._default_manager, OwnedManager)}
    assert {"Agent", "Task", "Issue", "Key", "Grant", "Approval"} <= set(tenants)
    found = []
    for name, _, tree in modules(tests=False):
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute)):
                continue
            model = tenants.get(ast.unparse(node.value.value).rpartition(".")[2])
            by_name = node.value.attr == "objects" and model is not None
            if by_name and not (node.attr in OPEN or takes_a_principal(model, node.attr)):
                found.append(f"{name}:{node.lineno} {ast.unparse(node)}")
    assert found == []


def test_no_code_goes_round_the_managers() -> None:
    found = [
        f"{name}:{node.lineno} {ast.unparse(node)}"
        for name, _, tree in modules(tests=False)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("_base_manager", "_default_manager")
    ]
    assert found == []


def test_every_family_is_named_and_has_its_tests() -> None:
    there = {path.stem for path in (ROOT / "mcp" / "tools").glob("*.py")} - {"__init__"}
    assert set(FAMILIES) == there
    assert len(FAMILIES) == len(there)
    tested = {path.stem.removeprefix("test_") for path in (ROOT / "mcp" / "tests" / "tools").glob("test_*.py")}
    assert there - tested == set()


def test_templates_and_code_mark_nothing_as_safe() -> None:
    pages = [(name, text) for name, text in texts() if name.startswith("templates/")]
    assert pages
    code = [(name, text) for name, text, _ in modules(tests=False)]
    found = [f"{name}: {hit[0]}" for name, text in pages for hit in UNSAFE.finditer(text)]
    found += [name for name, text in code if "mark_safe" in text or "SafeString" in text]
    assert found == []


def test_nothing_sleeps() -> None:
    found = [
        f"{name}:{node.lineno}"
        for name, _, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "time.sleep"
    ]
    found += [f"{name}:{line}" for name, _, tree in modules() for what, line in imported(tree) if what == "time.sleep"]
    assert found == []


def test_no_work_is_put_off_in_a_comment() -> None:
    assert [f"{name}: {hit[0]}" for name, text in texts() for hit in NOTES.finditer(text)] == []


def swallows(node: ast.AST) -> bool:
    """Whether it drops every fault without a word."""
    if isinstance(node, ast.ExceptHandler):
        broad = node.type is None or ast.unparse(node.type) in ("Exception", "BaseException")
        silent = all(isinstance(line, ast.Pass) or ast.unparse(line) == "..." for line in node.body)
        return broad and silent
    if not isinstance(node, ast.Call):
        return False
    named = {ast.unparse(argument) for argument in node.args}
    return ast.unparse(node.func).endswith("suppress") and bool(named & {"Exception", "BaseException"})


def test_no_fault_is_swallowed() -> None:
    nodes = ((name, node) for name, _, tree in modules() for node in ast.walk(tree))
    assert [f"{name}: {ast.unparse(node)}" for name, node in nodes if swallows(node)] == []


def test_only_the_wire_reads_the_types_of_the_protocol() -> None:
    readers = {
        name for name, _, tree in modules() for what, _ in imported(tree) if what.partition(".")[0] == "mcp_types"
    }
    assert readers == {"mcp/wire.py"}


def test_tools_and_actions_reach_no_network_and_start_nothing() -> None:
    inside = re.compile(r"mcp/tools/|\w+/actions/|duduclaw/\w+/actions/")
    found = [
        f"{name}:{line} {what}"
        for name, _, tree in modules(tests=False)
        if inside.match(name)
        for what, line in imported(tree)
        if what.partition(".")[0] in OUTSIDE
    ]
    assert found == []


def anchors(path: Path) -> set[str]:
    """The places inside a Markdown file that a link can name."""
    heads = HEADING.findall(path.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads}


def test_every_link_of_the_documentation_leads_somewhere() -> None:
    pages = [path for path in files() if path.suffix == ".md"]
    assert ROOT / "README.md" in pages
    dead = []
    for page in pages:
        for link in LINK.findall(page.read_text(encoding="utf-8")):
            address, _, place = link.partition("#")
            target = (page.parent / address).resolve() if address else page
            if re.match(r"[a-z]+:", link):
                continue
            if not target.exists() or (place and place not in anchors(target)):
                dead.append(f"{page.relative_to(ROOT)}: {link}")
    assert dead == []


def test_no_text_names_a_place_of_one_machine() -> None:
    assert [f"{name}: {hit[0]}" for name, text in texts() for hit in PLACES.finditer(text)] == []
