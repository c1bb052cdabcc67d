"""Pages of the public names, from what the package and its rooms export, and the check of them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

PACKAGE = "pyonednn_q"
_FRONT = "The front door"
_FRAMEWORKS = ("torch",)  # rooms whose names need them


def rooms() -> list[str]:
    """Return the public modules, the package first; not those whose names need a framework."""
    package = import_module(PACKAGE)
    names = [name for name in package.__all__ if name not in _FRAMEWORKS]
    inside = [name for name in names if isinstance(getattr(package, name), ModuleType)]
    return [PACKAGE, *(f"{PACKAGE}.{name}" for name in inside)]


def exports() -> Iterator[tuple[str, str, Any]]:
    """Yield (module, name, value) of everything public that is no module."""
    for module in map(import_module, rooms()):
        for name in module.__all__:
            value = getattr(module, name)
            if not isinstance(value, ModuleType):
                yield module.__name__, name, value


def homes() -> dict[tuple[str, str], str]:
    """Return the full name under which each public name is described, once for each value.

    A room's class that is also at the front door is described there.
    """
    described: dict[int, str] = {}
    return {
        (module, name): described.setdefault(id(value), f"{module}.{name}")
        for module, name, value in exports()
    }


def room_page(room: str, names: dict[str, str]) -> str:
    """Return the page of a room: what it is for, and a line for each name.

    Parameters
    ----------
    room : str
        Full name of the module.
    names : dict
        Full name of the description, by name.
    """
    title = _FRONT if room == PACKAGE else room.removeprefix(f"{PACKAGE}.")
    lines = [title, "=" * len(title), "", f".. automodule:: {room}", "   :no-members:", ""]
    own = [full for name, full in names.items() if full == f"{room}.{name}"]
    others = [full for full in names.values() if full not in own]
    if own:
        described = [name.rpartition(".")[2] for name in own]
        module = import_module(room)
        lines += _table([name for name in described if callable(getattr(module, name))])
        lines += [".. toctree::", "   :hidden:", ""]
        lines += [f"   {name} <names/{room}.{name}>" for name in described] + [""]
    if others:
        lines += ["Described elsewhere:", "", *_table([f"~{name}" for name in others])]
    return "\n".join(lines) + "\n"


def _table(names: list[str]) -> list[str]:
    return [".. autosummary::", "", *(f"   {name}" for name in names), ""]


def name_page(full: str, value: object) -> str:
    """Return the page of one name, which Sphinx fills from its docstring."""
    kind, options = "data", ["   :no-value:"]
    if isinstance(value, type):
        kind, options = "class", ["   :members:", "   :inherited-members:"]
        if issubclass(value, Exception):
            kind, options = "exception", ["   :members:"]
    elif callable(value):
        kind, options = "function", []
    room, _, name = full.rpartition(".")
    lines = [name, "=" * len(name), "", f".. currentmodule:: {room}", ""]
    if kind == "data":  # its type's docstring says nothing of it
        return "\n".join([*lines, f".. py:data:: {name}", "", f"   {_summary(value)}", ""])
    return "\n".join([*lines, f".. auto{kind}:: {name}", *options, ""])


def _summary(value: object) -> str:
    if isinstance(value, str):
        return f"``{value!r}``"
    return ", ".join(f"``{each}``" for each in value) if isinstance(value, dict) else ""


def pages() -> dict[str, str]:
    """Return all pages, by their place below docs/api."""
    described = homes()
    written = {}
    for module, name, value in exports():
        if (full := described[module, name]) == f"{module}.{name}":
            written[f"names/{full}.rst"] = name_page(full, value)
    listed = []
    for room in rooms():
        names = {name: full for (module, name), full in described.items() if module == room}
        listed.append("front" if room == PACKAGE else room.removeprefix(f"{PACKAGE}."))
        written[f"{listed[-1]}.rst"] = room_page(room, names)
    head = ["Python API", "==========", "", ".. toctree::", "   :maxdepth: 2", ""]
    written["index.rst"] = "\n".join([*head, *(f"   {each}" for each in listed)]) + "\n"
    return written


def write(app: Sphinx, _config: object) -> None:
    """Write pages that changed, so that Sphinx reads no other again, and take away old ones."""
    folder = Path(app.srcdir) / "docs" / "api"
    (folder / "names").mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for path in folder.rglob("*.rst"):
        if path.relative_to(folder).as_posix() not in wanted:
            path.unlink()
    for name, content in wanted.items():
        path = folder / name
        if not path.exists() or path.read_text() != content:
            path.write_text(content)


def order(app: Sphinx, page: str, source: list[str]) -> None:
    """Append the order of pages to the first one; on a code host it would be noise."""
    if page == app.config.root_doc:
        contents = Path(app.confdir) / "contents.md"
        app.env.note_dependency(str(contents))
        source[0] += contents.read_text()


def check(app: Sphinx, exception: Exception | None) -> None:
    """Refuse a site that lacks an entry for a public name."""
    if exception is not None:
        return
    entries = app.env.domaindata["py"]["objects"]
    missing = sorted({full for full in homes().values() if full not in entries})
    missing += [room for room in rooms() if room not in entries]
    if missing:
        message = f"public names without an entry: {', '.join(missing)}"
        raise ExtensionError(message)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register all with Sphinx."""
    app.connect("config-inited", write)
    app.connect("source-read", order)
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
