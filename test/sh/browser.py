"""Chromium for tests, without npm: driven over its debugging pipe (descriptors 3 and 4, JSON messages that end with a NUL)."""
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time


# Headless, and without any network traffic except for the pages that a test opens.
CHROMIUM = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--disable-default-apps"]


class Browser:
    def __init__(self, width=1400, height=900):
        if not shutil.which("chromium"):
            print("chromium is not installed")
            sys.exit(77)
        self.profile = tempfile.mkdtemp(prefix="descry-browser-")
        to_read, self.write = os.pipe()
        self.read, to_write = os.pipe()

        def descriptors():
            a, b = os.dup(to_read), os.dup(to_write)  # neither may be 3 or 4 already
            while a in (3, 4):
                a = os.dup(a)
            while b in (3, 4):
                b = os.dup(b)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [*CHROMIUM, "--remote-debugging-pipe", "--user-data-dir=" + self.profile, "--window-size=%d,%d" % (width, height), "about:blank"],
            preexec_fn=descriptors, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.rest = b""
        self.next = 0
        self.session = None
        targets = self.call("Target.getTargets")
        page = next((t for t in targets["targetInfos"] if t["type"] == "page"), None)
        target = page["targetId"] if page else self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def message(self, timeout):
        end = time.time() + timeout
        while b"\0" not in self.rest:
            if not select.select([self.read], [], [], max(0, end - time.time()))[0]:
                print("chromium does not answer on this machine")
                self.close()
                os._exit(77)
            more = os.read(self.read, 1 << 20)
            if not more:
                print("chromium ended by itself on this machine")
                os._exit(77)
            self.rest += more
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.next += 1
        m = {"id": self.next, "method": method, "params": params}
        if self.session:
            m["sessionId"] = self.session
        data = json.dumps(m).encode() + b"\0"
        while data:
            data = data[os.write(self.write, data):]
        while True:
            m = self.message(90)
            if m.get("id") == self.next:
                if "error" in m:
                    raise RuntimeError("%s: %s" % (method, m["error"]))
                return m["result"]

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def eval(self, text):
        r = self.call("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise RuntimeError("%s: %s" % (text, r["exceptionDetails"]))
        return r["result"].get("value")

    def until(self, text, seconds=30):
        """Waits until the expression is true; its value."""
        end = time.time() + seconds
        while True:
            v = self.eval(text)
            if v or time.time() > end:
                return v
            time.sleep(0.05)

    def mouse(self, kind, x, y, buttons=0, modifiers=0):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left" if kind != "mouseMoved" else "none",
                  buttons=buttons, clickCount=1, modifiers=modifiers)

    def click(self, x, y):
        self.mouse("mousePressed", x, y, 1)
        self.mouse("mouseReleased", x, y)

    def drag(self, x0, y0, x1, y1, modifiers=0):
        self.mouse("mousePressed", x0, y0, 1, modifiers)
        self.mouse("mouseMoved", (x0 + x1) / 2, (y0 + y1) / 2, 1, modifiers)
        self.mouse("mouseMoved", x1, y1, 1, modifiers)
        self.mouse("mouseReleased", x1, y1, 0, modifiers)

    def screenshot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.profile, True)
