"""A headless Chromium, spoken to in its DevTools protocol over two pipes: no driver and no package in between."""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " "), "ArrowDown": (40, ""), "End": (35, "")}
"""The number of a key, and what it writes."""
PATIENCE = 120
"""Seconds."""
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-extensions "
    "--disable-background-networking --disable-sync --hide-scrollbars --remote-debugging-pipe"
)


class Browser:
    """One browser with one tab."""

    def __init__(self):
        self._profile = tempfile.TemporaryDirectory()
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        # Chromium reads commands from descriptor 3 and writes answers to descriptor 4
        command = f'exec "{CHROMIUM}" {FLAGS} --user-data-dir="{self._profile.name}" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", command],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out = os.fdopen(ours_in, "rb"), os.fdopen(ours_out, "wb")
        self._number = 0
        self._buffer = b""
        self.events = []
        target = self.send("Target.createTarget", {"url": "about:blank"}, session=None)["targetId"]
        attached = self.send("Target.attachToTarget", {"targetId": target, "flatten": True}, session=None)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method, parameters=None, session=""):
        """A command, and its answer; events that come before it are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters or {}}
        if session is not None:
            message["sessionId"] = session or self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        self._out.flush()
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _read(self):
        while b"\0" not in self._buffer:
            chunk = self._in.read1(1 << 16)
            if not chunk:
                raise RuntimeError("the browser went away")
            self._buffer += chunk
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def open(self, path, width=1200, height=900, scheme="light", media=""):
        """A file, or an address, in a given window, colour scheme and medium; returns when it has loaded."""
        self.events.clear()
        mobile = width < 600
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.send("Emulation.setDeviceMetricsOverride", size)
        wanted = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", {"media": media, "features": wanted})
        url = path if str(path).startswith("http:") else Path(path).resolve().as_uri()
        self.send("Page.navigate", {"url": url})
        self.arrive("location.href !== 'about:blank'")

    def arrive(self, condition):
        """Wait until a page has loaded of which a condition holds; a page may go away while it is asked."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with contextlib.suppress(RuntimeError):
                if self.js(f"document.readyState === 'complete' && Boolean({condition})"):
                    return
            time.sleep(0.02)
        raise RuntimeError(f"in vain: {condition}")

    def js(self, code):
        """The value of an expression in the page."""
        found = self.send("Runtime.evaluate", {"expression": code, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"].get("description", "an error in the page"))
        return found["result"].get("value")

    def middle(self, selector):
        """Where an element is, after scrolling to it."""
        return self.js(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', inline: 'center'});"
            "const b = e.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; })()"
        )

    def hover(self, selector):
        x, y = self.middle(selector)
        self.send("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    def click(self, selector):
        x, y = self.middle(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})

    def press(self, key):
        """A key, as a keyboard has it: by its number too, without which Tab and the arrows move nothing."""
        number, text = KEYS.get(key, (0, ""))
        for kind in ("keyDown", "keyUp"):
            pressed = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": number}
            self.send("Input.dispatchKeyEvent", pressed | ({"text": text} if text and kind == "keyDown" else {}))

    def write(self, text):
        """Letters, where the focus is."""
        self.send("Input.insertText", {"text": text})

    @property
    def complaints(self):
        """What the page's console and its policy said, and every request that left the file system."""
        said = [
            event["params"]
            for event in self.events
            if event.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown")
        ]
        asked = [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return said + [url for url in asked if not url.startswith("file:")]

    def screenshot(self, path, height=None):
        """The window, or the page down to a height."""
        options = {"format": "png"}
        if height is not None:
            width = self.js("innerWidth")
            options |= {
                "captureBeyondViewport": True,
                "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1},
            }
        Path(path).write_bytes(base64.b64decode(self.send("Page.captureScreenshot", options)["data"]))

    def close(self):
        with contextlib.suppress(RuntimeError, OSError):
            self.send("Browser.close", session=None)
        self._process.wait(timeout=20)
        self._in.close()
        self._out.close()
        self._profile.cleanup()
