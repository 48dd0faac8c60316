"""descry serve under test: its address, requests to it."""
import atexit
import http.client
import json
import os
import re
import signal
import socket
import subprocess

from checks import *

DESCRY = os.environ["DESCRY"]


class Served:
    def __init__(self, *argv):
        self.process = subprocess.Popen([DESCRY, "serve", *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        atexit.register(self.process.kill)
        self.url = self.process.stdout.readline().decode().strip()
        if not self.url:
            skip(self.process.stderr.read().decode().strip().splitlines()[-1])
        self.host, self.token = re.match(r"http://([^/]*)/([0-9a-f]{32})/$", self.url).groups()

    def ask(self, path, method="GET", body=None, **headers):
        c = http.client.HTTPConnection(self.host, timeout=20)
        c.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        r = c.getresponse()
        text = r.read()
        c.close()
        return r, text.decode()

    def socket(self, source="127.0.0.1", timeout=30):
        """A connection from an address of this machine."""
        at, port = self.host.rsplit(":", 1)
        return socket.create_connection((at, int(port)), timeout, (source, 0))

    def head(self, path, method="GET", *lines):
        """The bytes of a request's head."""
        return "\r\n".join(["%s /%s/%s HTTP/1.1" % (method, self.token, path), "Host: " + self.host, *lines, "", ""]).encode()

    def stream(self, source="127.0.0.1"):
        """Listens to the events: the connection, the status, and a function that gives the next event."""
        c = self.socket(source)
        c.sendall(self.head("events"))
        f = c.makefile("rb")
        try:
            status = int(f.readline().split()[1])
            while f.readline().strip():
                pass
        except (OSError, IndexError):  # no answer
            status = 0

        def event():
            text = b""
            while not text.endswith(b"\n\n"):  # chunks of HTTP: size, bytes
                size = int(f.readline() or b"0", 16)
                if not size:
                    return None
                text += f.read(size)
                f.readline()
                if text == b":\n\n":  # nothing new
                    text = b""
            return json.loads(text[len("data: "):])
        return c, status, event

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.said = self.process.communicate(timeout=30)[1]
