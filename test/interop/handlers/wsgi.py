"""The handler as a WSGI application, for gunicorn and waitress."""


def app(environ, start_response):
    def text(status, body, *headers):
        start_response(status, [("content-length", str(len(body))), *headers])
        return [body]

    path = environ["PATH_INFO"]
    if path == "/early":
        return text("413 Too Large", b"too large")
    length = len(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
    if path == "/chunked":
        start_response("200 OK", [])
        return iter([b"one ", b"two ", b"three"])
    if path == "/empty":
        start_response("204 No Content", [])
        return []
    if path == "/error":
        return text("500 Error", b"broken")
    if path == "/redirect":
        return text("302 Found", b"", ("location", "/echo"))
    if path == "/large":
        return text("200 OK", b"x" * 200_000)
    return text("200 OK", str(length).encode())
