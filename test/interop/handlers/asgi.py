"""The handler as an ASGI application, for uvicorn and hypercorn."""


async def app(scope, receive, send):
    if scope["type"] != "http":
        return

    async def text(status, body, *headers):
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
        await send({"type": "http.response.body", "body": body})

    path = scope["path"]
    if path == "/early":
        return await text(413, b"too large")
    length = 0
    while True:
        message = await receive()
        length += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    if path == "/chunked":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for part in [b"one ", b"two ", b"three"]:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    elif path == "/close":
        await text(200, b"bye", (b"connection", b"close"))
    elif path == "/empty":
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})
    elif path == "/error":
        await text(500, b"broken")
    elif path == "/redirect":
        await text(302, b"", (b"location", b"/echo"))
    elif path == "/large":
        await text(200, b"x" * 200_000)
    else:
        await text(200, str(length).encode())
