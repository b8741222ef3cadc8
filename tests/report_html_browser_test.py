"""Opens a page that `--html` wrote in headless Chromium, without JavaScript, in light and dark and at two widths: nothing is
logged or loaded, nothing overflows sideways, text has contrast. Usage: report_html_browser_test.py PROGRAM [SCREENSHOTS]"""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

LEAST_CONTRAST = 4.5  # WCAG 2.1, level AA
PATIENCE = 120  # seconds for one answer
WIDTHS = (1280, 400)
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
  --disable-component-update --disable-sync --disable-dev-shm-usage --remote-debugging-pipe""".split()

# The worst contrast of any text with its background, what sticks out of the page, and whether scripts of the page ran.
PROBE = """(() => {
  const number = text => text.match(/[\\d.]+/g).map(Number);
  const light = rgb => rgb.slice(0, 3).map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const back = e => { for (; e; e = e.parentElement) { const c = number(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  let worst = [99, ''], texts = 0;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode());) {
    const e = node.parentElement;
    if (!node.data.trim() || !e.getClientRects().length || ['title', 'desc'].includes(e.tagName)) continue;
    const style = getComputedStyle(e), svg = e.tagName === 'text';
    const a = light(number(svg ? style.fill : style.color)), b = light(back(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    texts += 1;
    if (ratio < worst[0]) worst = [ratio, node.data.trim().slice(0, 40)];
  }
  const drawings = [...document.querySelectorAll('svg')];
  const outside = [...document.querySelectorAll('svg text')].filter(t => { const b = t.getBBox();
    const v = t.ownerSVGElement.viewBox.baseVal; return b.x < -1 || b.y < -1 || b.x + b.width > v.width + 1 ||
    b.y + b.height > v.height + 1; }).map(t => t.textContent);
  return {worst, texts, outside, scroll: document.documentElement.scrollWidth, wide: innerWidth,
    untitled: drawings.filter(d => !d.querySelector('title')).length, drawings: drawings.length,
    banner: document.querySelector('.stand-in')?.getBoundingClientRect().top, height: document.documentElement.scrollHeight,
    back: getComputedStyle(document.body).backgroundColor, title: document.title, articles:
    document.querySelectorAll('article').length};
})()"""


class Browser:
    """Chromium, spoken to over a pair of pipes."""

    def __init__(self, chromium, folder):
        from_here, self.to_browser = os.pipe()
        self.from_browser, from_there = os.pipe()

        def place():  # the browser reads descriptor 3 and writes 4
            a, b = os.dup2(from_here, 100), os.dup2(from_there, 101)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.log = open(os.path.join(folder, "log"), "wb")
        self.process = subprocess.Popen([chromium, *FLAGS, "--user-data-dir=" + os.path.join(folder, "profile"), "about:blank"],
                                        preexec_fn=place, close_fds=False, stdout=self.log, stderr=self.log)
        os.close(from_here)
        os.close(from_there)
        self.pending, self.events, self.number, self.session = b"", [], 0, None

    def read(self, deadline):
        while b"\0" not in self.pending:
            if not select.select([self.from_browser], [], [], max(0, deadline - time.monotonic()))[0]:
                sys.exit("FAILED: the browser does not answer")
            piece = os.read(self.from_browser, 1 << 20)
            if not piece:
                sys.exit("FAILED: the browser ended")
            self.pending += piece
        message, self.pending = self.pending.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while (answer := self.read(deadline)).get("id") != self.number:
            self.events.append(answer)
        if "error" in answer:
            sys.exit(f"FAILED: {method}: {answer['error']}")
        return answer["result"]

    def wait_for(self, method):
        deadline = time.monotonic() + PATIENCE
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.read(deadline))

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE)


def check(holds, what):
    if not holds:
        print("FAILED:", what)
        check.failed = True


check.failed = False


def check_page(browser, page, screenshots):
    browser.session = browser.call("Target.attachToTarget", flatten=True, targetId=browser.call(
        "Target.createTarget", url="about:blank")["targetId"])["sessionId"]
    for domain in ("Page", "Log", "Runtime", "Network"):
        browser.call(domain + ".enable")
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    for scheme in ("light", "dark"):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        for width in WIDTHS:
            browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
            browser.events.clear()
            browser.call("Page.navigate", url=page.as_uri())
            browser.wait_for("Page.loadEventFired")
            seen = browser.call("Runtime.evaluate", expression=PROBE, returnByValue=True)
            check("exceptionDetails" not in seen, seen)
            seen = seen["result"]["value"]
            where = f"{page.name}, {scheme}, {width} px"
            print(where + ":", json.dumps(seen))
            logged = [e for e in browser.events if e.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown",
                                                                       "Runtime.consoleAPICalled")]
            check(not logged, f"{where}: logged {logged}")
            loaded = [e["params"]["request"]["url"] for e in browser.events if e.get("method") == "Network.requestWillBeSent"]
            check(loaded == [page.as_uri()], f"{where}: loaded {loaded}")
            check(seen["scroll"] <= width, f"{where}: {seen['scroll']} px wide")
            check(seen["texts"] > 50 and seen["worst"][0] >= LEAST_CONTRAST, f"{where}: contrast {seen['worst']}")
            check(seen["drawings"] > 0 and seen["untitled"] == 0, f"{where}: drawings without a title")
            check(not seen["outside"], f"{where}: text beyond its drawing: {seen['outside']}")
            check(seen.get("banner") == 0, f"{where}: the stand-in's banner is not on top")
            check(seen["articles"] > 0, f"{where}: no difference is shown")
            dark = all(int(part) < 128 for part in seen["back"][4:-1].split(","))
            check(dark == (scheme == "dark"), f"{where}: the background is {seen['back']}")
            if screenshots:
                shot = browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip={
                    "x": 0, "y": 0, "width": width, "height": min(seen["height"], 2400), "scale": 1})
                (pathlib.Path(screenshots) / f"{page.stem}-{scheme}-{width}.png").write_bytes(base64.b64decode(shot["data"]))


def main():
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        if os.environ.get("BITWITNESS_REQUIRE_FIXTURES"):
            sys.exit("FAILED: chromium is not installed (Debian: chromium)")
        print("SKIPPED: chromium is not installed (Debian: chromium)")
        sys.exit(77)
    program, screenshots = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder, "page.html")
        if program.endswith(".html"):
            shutil.copy(program, page)
        else:
            # With 24 bits of precision the routine rounds otherwise than the decoder.
            made = subprocess.run([program, "verify", "--jobs", "1", "--fpcw", "007f", "--values", "random:2000",
                                   "--html", str(page)], stdout=subprocess.DEVNULL, check=False)
            check(made.returncode == 1, f"verify ended with {made.returncode}, not with differences")
        browser = Browser(chromium, folder)
        try:
            check_page(browser, page, screenshots)
        finally:
            browser.close()
    if check.failed:
        sys.exit(1)


main()
