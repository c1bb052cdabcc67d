"""Pages in a real browser: what a script finds on them, of any width, light or dark."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

__all__ = ["FITS", "asked", "needs_browser"]

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_BROWSER = next(filter(None, map(shutil.which, _NAMES)), None)
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--window-size=2000,1400",
)
_DARK = "--blink-settings=preferredColorScheme=0"
# A window is never narrower than 500: pages stand in a frame.
_FRAME = """<!doctype html><meta charset="utf-8"><style>:root {{ color-scheme: light dark }}</style>
<script>addEventListener("message", event => {{
  const answer = document.createElement("pre");
  answer.id = "answer"; answer.textContent = event.data; document.body.append(answer);
}});</script>
<iframe src="{page}" style="border: 0; width: {width}px; height: 900px"></iframe>"""
_ASK = """<script>addEventListener("load", async () => {
  let said;
  try { said = await (async () => { %s })(); } catch (error) { said = String(error.stack); }
  parent.postMessage(JSON.stringify(said), "*");
});</script></body>"""
# How far a page scrolls sideways; and the contrast of each text to what is behind it, as WCAG 2
# has it.
FITS = """
const parsed = text => text.match(/[0-9.]+/g).map(Number);
const over = (top, below) => {
  const a = top.length > 3 ? top[3] : 1;
  return [0, 1, 2].map(at => a * top[at] + (1 - a) * below[at]);
};
const light = rgb => rgb.map(each => each / 255).map(
  each => each <= .04045 ? each / 12.92 : ((each + .055) / 1.055) ** 2.4
).reduce((sum, each, at) => sum + each * [.2126, .7152, .0722][at], 0);
const canvas = matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
const contrasts = [...document.querySelectorAll("body *")].filter(each => each.offsetHeight !== 0
  && [...each.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())
  && !each.matches("script, style, title")).map(each => {
  const above = [];
  for (let at = each; at && at.nodeType === 1; at = at.parentElement) above.unshift(at);
  let back = canvas, opacity = 1;
  for (const at of above) {
    const style = getComputedStyle(at);
    back = over(parsed(style.backgroundColor), back);
    opacity *= Number(style.opacity);
  }
  const style = getComputedStyle(each);
  const ink = parsed(each.ownerSVGElement ? style.fill : style.color);
  const text = over([...ink.slice(0, 3), (ink[3] ?? 1) * opacity], back);
  const [a, b] = [light(text), light(back)].sort((x, y) => y - x);
  return [(a + .05) / (b + .05), each.textContent.trim().slice(0, 40)];
});
return {
  scrolls: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  count: contrasts.length, contrasts,
};
"""


def needs_browser(test: Any) -> Any:
    """Skip a test where no browser is installed."""
    return pytest.mark.skipif(_BROWSER is None, reason="no chromium is installed")(test)


def asked(page: str, script: str, folder: Path, *, width: int = 1400, is_dark: bool = False) -> Any:
    """Return what a script answers on a page.

    Parameters
    ----------
    page : str
        HTML.
    script : str
        JavaScript: the body of an asynchronous function, whose result JSON can say.
    folder : Path
        Where to write the page.
    width : int
        CSS pixels.
    is_dark : bool
        Whether the reader prefers dark colours.
    """
    file, frame = folder / "page.html", folder / "frame.html"
    file.write_text(page.replace("</body>", _ASK.replace("%s", script)), encoding="utf-8")
    frame.write_text(_FRAME.format(page=file.as_uri(), width=width), encoding="utf-8")
    flags = (*_FLAGS, f"--user-data-dir={folder / 'profile'}", *([_DARK] if is_dark else []))
    done = subprocess.run(
        [str(_BROWSER), *flags, "--virtual-time-budget=60000", "--dump-dom", frame.as_uri()],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    match = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout, re.DOTALL)
    assert match is not None, done.stdout[-2000:]
    return json.loads(unescape(match[1]))
