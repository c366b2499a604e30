import json
import re
import shutil
import subprocess
import tempfile
from html import unescape
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
    # Time passes as fast as the page allows, and ends when this much has passed for the page.
    *("--disable-sync", "--virtual-time-budget=20000"),
)

# What tests use in their scripts; what they return comes back through the page itself.
DRIVER = """
<script>
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const until = async (find) => {
  for (let i = 0; i < 100; i++) { const found = find(); if (found) return found; await wait(50); }
  throw new Error("not found: " + find);
};
const click = async (find) => { (await until(find)).click(); await wait(200); };
const named = (text) => () =>
  [...document.querySelectorAll("a, button")].find((e) => e.textContent.trim() === text);
const inRow = (text, position) => () =>
  [...document.querySelectorAll("tr")].find((e) => e.textContent.includes(text))
    ?.querySelectorAll("a")[position];
(async () => {
  let seen;
  try { seen = await (async () => { %s })(); } catch (error) { seen = {error: String(error)}; }
  const note = document.createElement("pre");
  note.id = "seen";
  note.hidden = true;
  note.textContent = JSON.stringify(seen);
  document.body.append(note);
})();
</script>
"""


def browser() -> str:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("needs Chromium, for example Debian's package chromium")
    return found


def visit(page: Path, script: str) -> Any:
    """Run `script` in a copy of `page`; return what it returns."""
    program = browser()
    before, end, after = page.read_text(encoding="utf-8").rpartition("</body>")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "page.html"
        copy.write_text(before + DRIVER % script + end + after, encoding="utf-8")
        place = [f"--user-data-dir={folder}/profile", copy.as_uri(), "--dump-dom"]
        done = subprocess.run(
            [program, *FLAGS, *place], capture_output=True, timeout=120, check=True
        )
        dom = done.stdout.decode()
    note = re.search(r'<pre id="seen" hidden="">(.*?)</pre>', dom, re.DOTALL)
    assert note, dom[-2000:]
    return json.loads(unescape(note.group(1)))
