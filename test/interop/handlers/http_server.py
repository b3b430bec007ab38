"""The handler with Python's http.server. With HTTP10=1 it speaks HTTP/1.0, which is the module's default."""
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0" if os.environ.get("HTTP10") else "HTTP/1.1"
    timeout = float(os.environ["IDLE_MS"]) / 1000

    def text(self, status, body, **headers):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())

    def do_POST(self):
        if self.path == "/early":
            self.close_connection = True
            return self.text(413, "too large", connection="close")
        length = len(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/chunked":
            self.send_response(200)
            is_chunked = self.protocol_version == "HTTP/1.1"
            if is_chunked:
                self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for part in ["one ", "two ", "three"]:
                self.wfile.write((f"{len(part):x}\r\n{part}\r\n" if is_chunked else part).encode())
            if is_chunked:
                self.wfile.write(b"0\r\n\r\n")
        elif self.path == "/interim":
            if self.protocol_version == "HTTP/1.1":
                self.send_response_only(100)
                self.end_headers()
            self.text(200, str(length))
        elif self.path == "/close":
            self.text(200, "bye", connection="close")
        elif self.path == "/empty":
            self.send_response(204)
            self.end_headers()
        elif self.path == "/error":
            self.text(500, "broken")
        elif self.path == "/redirect":
            self.text(302, "", location="/echo")
        elif self.path == "/large":
            self.text(200, "x" * 200_000)
        else:
            self.text(200, str(length))

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    # The default of 5 drops the SYNs of 50 connections at once, which are then repeated after seconds.
    request_queue_size = 128


Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
