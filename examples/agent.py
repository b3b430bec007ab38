"""An agent of Posthorn's relay: docs/relay-protocol.md. Run it: pip install websockets; python3 examples/agent.py wss://hooks.example.com hub"""
import asyncio, base64, json, os, random, sys
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

FINAL = {4400, 4401, 4403, 4409}  # Connecting again would not help.
handled = {}  # By delivery: handlers that run, and outcomes that the server has not settled.


async def handle(event, body):
    """Your program. It has done the work when it returns."""
    print(event["id"], event["method"], event["path"], body.decode(errors="replace"), flush=True)
    return {"result": "success", "status": 200}


async def outcome_of(event):
    try:
        return await handle(event, event["body"].encode() if "body" in event else base64.b64decode(event["base64"]))
    except Exception as error:
        return {"result": "transient", "error": str(error)[:1000]}


async def answer(socket, event):
    request = {field: event[field] for field in ("id", "attempt", "token")}
    if event["id"] not in handled:
        handled[event["id"]] = asyncio.create_task(outcome_of(event))
    task = handled[event["id"]]
    try:
        while not (await asyncio.wait([task], timeout=event["deadline"] / 2000))[0]:
            await socket.send(json.dumps({"kind": "working", "id": event["id"], "token": event["token"]}))
        empty = {"status": None, "error": None, "retryAfter": None, "response": None}
        await socket.send(json.dumps({"kind": "ack", **request, **empty, **task.result()}))
    except ConnectionClosed:
        pass  # The event comes again.
    finally:
        if task.done() and task.result()["result"] == "transient":
            handled.pop(event["id"], None)  # It is run again when it comes again.


async def main(server, name):
    headers = {"Authorization": f"Bearer {os.environ['POSTHORN_API_KEY']}"}
    options = {"compression": None, "max_size": 8 * 2**20, "ping_interval": 20, "ping_timeout": 25}
    # It connects again after errors of the network and 5xx, with growing delays, and raises for other refusals.
    async for socket in connect(f"{server}/api/v1/relay", subprotocols=["posthorn.relay.v1"], additional_headers=headers, **options):
        tasks = set()
        try:
            await socket.send(json.dumps({"kind": "hello", "agent": name, "version": "agent.py", "credit": 16}))
            async for text in socket:
                frame = json.loads(text)
                if frame["kind"] == "event":
                    task = asyncio.create_task(answer(socket, frame))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                elif frame["kind"] == "settled":
                    handled.pop(frame["id"], None)
        except ConnectionClosed:
            pass
        if socket.close_code in FINAL:
            sys.exit(f"the server closed the connection: {socket.close_code} {socket.close_reason}")
        await asyncio.sleep(random.random())


asyncio.run(main(*sys.argv[1:]))
