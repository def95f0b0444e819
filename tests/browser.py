"""A real browser, driven over a pipe with the DevTools protocol."""

import base64
import json
import os
import shutil
import subprocess
import sys
import time

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
MISSING = "no Chromium on the PATH: install one to check the pages in a real browser"

# Chromium reads commands from descriptor 3 and writes answers to 4.
_LAUNCH = (
    "import fcntl, os, sys\n"
    "r, w = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])\n"
    "os.dup2(r, 3), os.dup2(w, 4)\n"
    "os.execv(sys.argv[3], sys.argv[3:])\n"
)
_OPTIONS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--no-first-run",
    "--remote-debugging-pipe",
]  # fmt: skip


class Chromium:
    """The process: takes commands for any of its tabs, and hands each tab what it says."""

    def __init__(self, profile):
        self.tabs = {}
        self._number, self._rest = 0, b""
        read_command, self._write = os.pipe()
        self._read, write_answer = os.pipe()
        command = [sys.executable, "-c", _LAUNCH, str(read_command), str(write_answer)]
        command += [CHROMIUM, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            command,
            pass_fds=(read_command, write_answer),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_command)
        os.close(write_answer)
        os.set_blocking(self._read, False)

    def close(self):
        try:
            self.call(None, "Browser.close")
            self._process.wait(10)
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._write)
            os.close(self._read)

    def call(self, session, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 120
        while True:
            answer = self.next(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def next(self, deadline):
        """Wait for a message; a tab handles it first, if it is an event of that tab."""
        while b"\0" not in self._rest:
            assert time.monotonic() < deadline, "the browser does not answer"
            try:
                part = os.read(self._read, 1 << 20)
                assert part, "the browser has gone"
                self._rest += part
            except BlockingIOError:
                time.sleep(0.005)
        message, _, self._rest = self._rest.partition(b"\0")
        event = json.loads(message)
        if event.get("sessionId") in self.tabs:
            self.tabs[event["sessionId"]].handle(event)
        return event


class Browser:
    """One tab, with everything that it complained about or asked the network for."""

    def __init__(self, profile, width=1200, height=900, chromium=None):
        self.problems, self.requests = [], []
        self._owned = chromium is None
        self.chromium = chromium or Chromium(profile)
        # a window of its own: a tab behind another one is not drawn
        made = self.chromium.call(None, "Target.createTarget", url="about:blank", newWindow=True)
        target = made["targetId"]
        attached = self.chromium.call(None, "Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.chromium.tabs[self._session] = self
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.resize(width, height)

    def tab(self, width=1200, height=900):
        """Open another tab of the same browser, with the same cookies."""
        return Browser(None, width, height, self.chromium)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._owned:
            self.chromium.close()

    def resize(self, width, height):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def emulate(self, media="", **features):
        """Pretend to print, or that the user prefers something."""
        named = [
            {"name": name.replace("_", "-"), "value": value} for name, value in features.items()
        ]
        self.call("Emulation.setEmulatedMedia", media=media, features=named)

    def open(self, path):
        """Open a file or an address."""
        self._loaded = False
        url = path if isinstance(path, str) else path.resolve().as_uri()
        self.call("Page.navigate", url=url)
        while not self._loaded:
            self.chromium.next(time.monotonic() + 120)
        # two frames later everything that was to be drawn at once is on the screen
        self.run("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def run(self, script):
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, script, seconds=120):
        """Wait until something is true of the page."""
        deadline = time.monotonic() + seconds
        while not self.run(f"!!({script})"):
            assert time.monotonic() < deadline, f"{script}\n{self.run('document.body.innerText')}"
            time.sleep(0.05)

    def screenshot(self, path, whole=True):
        options = {"captureBeyondViewport": whole}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            options["clip"] = {**size, "x": 0, "y": 0, "scale": 1}
        data = self.call("Page.captureScreenshot", **options)["data"]
        path.write_bytes(base64.b64decode(data))

    def pdf(self, path):
        path.write_bytes(
            base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"])
        )

    def call(self, method, **params):
        return self.chromium.call(self._session, method, **params)

    def handle(self, event):
        method, params = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(params["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.problems.append(params["args"])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(params["entry"])
