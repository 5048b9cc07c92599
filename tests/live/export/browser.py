# SPDX-License-Identifier: BSD-2-Clause
"""Pages as a person sees them: headless Chromium, by its DevTools protocol."""

import atexit
import base64
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import urllib.request

from harness import Skip, check_equal


class Navigated(Exception):
    """The page that was asked is gone."""


class Page:
    """A page that is open in a browser of its own. `fragment`: what is behind "#"; `may_log`: of what it says on the console only
    warnings and errors are complaints."""

    def __init__(self, file, width=1000, height=700, dark=False, fragment="", may_log=False):
        try:
            import websocket
        except ImportError:
            raise Skip("no python3-websocket: ./run setup pages") from None
        chromium = shutil.which("chromium")
        if chromium is None:
            raise Skip("no chromium: ./run setup pages")
        self.home = tempfile.TemporaryDirectory(prefix="usdt-browser-", ignore_cleanup_errors=True)
        self.browser = subprocess.Popen(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--remote-allow-origins=*",
             f"--user-data-dir={self.home.name}", "--force-device-scale-factor=1", f"--window-size={width},{height}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.home.name})
        atexit.register(self.browser.kill)  # a scenario that fails closes nothing
        self.numbers, self.complaints, self.may_log = itertools.count(1), [], may_log
        port = self._port()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
            target = next(t for t in json.load(answer) if t["type"] == "page")
        self.socket = websocket.create_connection(target["webSocketDebuggerUrl"], timeout=60)
        for domain in ("Runtime", "Log", "Network", "Page"):
            self.call(f"{domain}.enable")
        self.look_at(width, height, dark)
        self.asked_for = []
        self.open(file, fragment)

    def look_at(self, width, height=700, dark=False):
        """On a screen of this size, by somebody who likes it dark or light."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, file, fragment="", query=""):
        began = time.monotonic()
        url = pathlib.Path(file).resolve().as_uri()
        self.call("Page.navigate", url=url + (f"?{query}" if query else "") + (f"#{fragment}" if fragment else ""))
        while self.value("document.readyState") != "complete":
            time.sleep(0.02)
        self.seconds_to_load = time.monotonic() - began

    def _port(self):
        file = pathlib.Path(self.home.name) / "DevToolsActivePort"
        for _ in range(600):
            if file.exists() and file.read_text().count("\n"):
                return int(file.read_text().split()[0])
            time.sleep(0.1)
        raise AssertionError("the browser does not start")

    def call(self, method, **parameters):
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            self._notice(message)
            if message.get("id") == number:
                if "navigated" in message.get("error", {}).get("message", ""):
                    raise Navigated
                assert "error" not in message, message
                return message["result"]

    def _notice(self, message):
        what, said = message.get("method"), message.get("params", {})
        if what == "Runtime.exceptionThrown" or (what == "Log.entryAdded" and said["entry"]["level"] == "error"):
            self.complaints.append(said)
        if what == "Runtime.consoleAPICalled" and not (self.may_log and said["type"] not in ("error", "warning", "assert")):
            self.complaints.append(said)
        if what == "Network.requestWillBeSent":
            self.asked_for.append(said["request"]["url"])

    def value(self, expression):
        """What an expression of JavaScript gives; None: another page came meanwhile."""
        try:
            result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        except Navigated:
            return None
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **({"text": text} if kind == "keyDown" and text else {}))

    def type(self, text):
        for letter in text:
            self.press(letter, letter)

    def mouse(self, kind, x, y):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def click(self, x, y):
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def picture(self, file):
        pathlib.Path(file).write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self):
        """Ends the browser; it had nothing to complain of, and has asked nobody for anything."""
        self.socket.close()
        self.browser.terminate()
        self.browser.wait(30)
        self.home.cleanup()
        check_equal(self.complaints, [], "what the console says")
        check_equal([url for url in self.asked_for if not url.startswith(("file:", "data:"))], [], "what it asks the network for")
