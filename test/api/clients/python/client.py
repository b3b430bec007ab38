"""Goes through the API with Svix's Python client, as its users do. Ends with the call that failed."""

import json
import os
import sys
import threading
import time
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from svix.api import (
    ApplicationIn,
    ApplicationListOptions,
    ApplicationPatch,
    EndpointIn,
    EndpointPatch,
    EventTypeIn,
    EventTypePatch,
    MessageAttemptListByEndpointOptions,
    MessageCreateOptions,
    MessageGetOptions,
    MessageIn,
    MessageListOptions,
    Svix,
    SvixOptions,
)
from svix import models
from svix.exceptions import HttpError, HTTPValidationError, WebhookVerificationError
from svix.webhooks import Webhook

received = []
arrived = threading.Condition()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        with arrived:
            received.append((self.path, dict(self.headers), body))
            arrived.notify_all()
        self.send_response(500 if self.path == "/failing" else 200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=receiver.serve_forever, daemon=True).start()
base = f"http://127.0.0.1:{receiver.server_port}"


def waited_for(what, test):
    """The last call's answer, once it passes the test."""
    for _ in range(600):
        found = test()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come")


def webhook(path, count=1):
    with arrived:
        enough = lambda: len([one for one in received if one[0] == path]) >= count
        assert arrived.wait_for(enough, 30), f"{path} got fewer than {count} webhooks"
        return [one for one in received if one[0] == path][count - 1]


def refused(status, call, error=HttpError):
    try:
        call()
    except error as found:
        assert found.status_code == status, f"{found.status_code} instead of {status}"
        return found
    raise AssertionError(f"no {status}")


svix = Svix(os.environ["POSTHORN_KEY"], SvixOptions(server_url=os.environ["POSTHORN_URL"]))
now = datetime.now(timezone.utc)
hour_ago = now - timedelta(hours=1)
secret = {}


def health():
    svix.health.get()


def applications():
    apps = svix.application
    app = apps.create(ApplicationIn(name="Acme", uid="py", metadata=None, throttle_rate=None))
    assert app.uid == "py" and app.metadata == {}, app
    assert apps.get_or_create(ApplicationIn(name="Acme", uid="py")).id == app.id
    assert apps.patch("py", ApplicationPatch(metadata={"tier": "gold"})).metadata == {"tier": "gold"}
    assert apps.upsert("py", ApplicationIn(name="Acme Ltd.", uid="py")).name == "Acme Ltd."
    for i in range(3):
        apps.create(ApplicationIn(name=f"Other {i}", uid=f"py-{i}"))
    seen, iterator = [], None
    while True:
        page = apps.list(ApplicationListOptions(limit=2, iterator=iterator))
        seen += [one.uid for one in page.data]
        iterator = page.iterator
        if page.done:
            break
    assert {"py", "py-0", "py-1", "py-2"} <= set(seen) and len(seen) == len(set(seen)), seen
    apps.delete("py-2")
    refused(404, lambda: apps.get("py-2"))
    refused(409, lambda: apps.create(ApplicationIn(name="Again", uid="py")))
    refused(422, lambda: apps.create(ApplicationIn(name="")), HTTPValidationError)


def event_types():
    types = svix.event_type
    made = types.create(EventTypeIn(name="py.paid", description="Paid", schemas=None, feature_flags=None))
    assert made.name == "py.paid", made
    assert types.patch("py.paid", EventTypePatch(description="Was paid")).description == "Was paid"
    types.upsert("py.paid", models.EventTypeUpsertIn(description="Paid", archived=None))
    assert "py.paid" in [one.name for one in types.list().data]
    assert types.get("py.paid").archived is False
    spec = {"webhooks": {"py.imported": {"post": {"description": "Imported"}}}}
    types.import_openapi(models.EventTypeImportOpenApiIn(spec=spec))
    types.delete("py.imported")


def endpoints():
    endpoint = svix.endpoint
    made = endpoint.create(
        "py",
        EndpointIn(
            url=f"{base}/hook",
            uid="hook",
            description=None,
            throttle_rate=None,
            disabled=None,
            event_types=None,
            channels=None,
            secret=None,
            metadata=None,
            headers=None,
        ),
    )
    assert made.uid == "hook" and made.description == "" and made.metadata == {}, made
    assert endpoint.patch("py", "hook", EndpointPatch(description="Hook")).description == "Hook"
    upsert = models.EndpointUpsertIn(url=f"{base}/hook", uid="hook", metadata={"a": "b"})
    assert endpoint.upsert("py", "hook", upsert).metadata == {"a": "b"}
    assert [one.uid for one in endpoint.list("py").data] == ["hook"]
    assert endpoint.get("py", "hook").url == f"{base}/hook"
    endpoint.set_headers("py", "hook", models.EndpointHeadersIn(headers={"X-One": "1"}))
    patch = models.EndpointHeadersPatchIn(headers={"X-Two": "2"}, delete_headers=["X-One"])
    endpoint.patch_headers("py", "hook", patch)
    assert endpoint.get_headers("py", "hook").headers == {"X-Two": "2"}
    endpoint.create("py", EndpointIn(url=f"{base}/failing", uid="failing", event_types=["py.fails"]))
    secret["old"] = endpoint.get_secret("py", "hook").key
    endpoint.rotate_secret("py", "hook", models.EndpointSecretRotateIn(key=None))
    secret["new"] = endpoint.get_secret("py", "hook").key
    assert secret["old"] != secret["new"]


def messages():
    message = svix.message
    first = MessageIn(
        event_type="py.paid",
        event_id="py-1",
        payload={"number": 1, "nothing": None},
        channels=None,
        application=None,
        tags=["red"],
        deliver_at=None,
        payload_retention_period=None,
        payload_retention_hours=None,
    )
    key = MessageCreateOptions(idempotency_key="py-1")
    sent = message.create("py", first, key)
    assert message.create("py", first, key).id == sent.id
    _, headers, body = webhook("/hook")
    for one in secret.values():
        Webhook(one).verify(body, headers)
    assert json.loads(body) == {"number": 1, "nothing": None}
    assert headers["X-Two"] == "2", headers
    try:
        Webhook(secret["new"]).verify(body + b" ", headers)
        raise AssertionError("a changed body was verified")
    except WebhookVerificationError:
        pass
    whole = message.get("py", sent.id, MessageGetOptions(with_content=True))
    assert whole.payload == {"number": 1, "nothing": None}, whole
    message.create("py", MessageIn(event_type="py.fails", payload={}))
    for i in range(4):
        message.create("py", MessageIn(event_type="py.other", payload={"i": i}, channels=["c"]))
    red = message.list("py", MessageListOptions(tag="red", before=now + timedelta(hours=1), after=hour_ago))
    assert [one.id for one in red.data] == [sent.id], red
    page = message.list("py", MessageListOptions(limit=4))
    rest = message.list("py", MessageListOptions(limit=4, iterator=page.iterator))
    assert len(page.data) == 4 and len(rest.data) == 2 and rest.done, rest
    check = models.MessagePrecheckIn(event_type="py.paid", channels=None)
    assert message.precheck("py", check).active


def attempts():
    attempt = svix.message_attempt
    webhook("/failing")
    by_endpoint = lambda: attempt.list_by_endpoint("py", "failing").data
    failed = waited_for("the failed attempt", by_endpoint)[0]
    assert failed.status == models.MessageStatus.FAIL and failed.response_status_code == 500, failed
    fails = MessageAttemptListByEndpointOptions(status=models.MessageStatus.FAIL)
    assert attempt.list_by_endpoint("py", "failing", fails).data
    sent = svix.message.get("py", "py-1")
    first = waited_for("the attempt", lambda: attempt.list_by_msg("py", sent.id).data)[0]
    assert attempt.get("py", sent.id, first.id).id == first.id
    assert attempt.list_attempted_messages("py", "hook").data
    assert [one.uid for one in attempt.list_attempted_destinations("py", sent.id).data] == ["hook"]
    before = len([one for one in received if one[0] == "/hook"])
    attempt.resend("py", sent.id, "hook")
    webhook("/hook", before + 1)
    attempt.expunge_content("py", sent.id, first.id)
    stats = svix.endpoint.get_stats("py", "hook")
    assert stats.success > 0, stats
    stats = svix.endpoint.get_attempt_stats("py", "hook")
    assert stats.success > 0, stats
    example = models.EventExampleIn(event_type="py.paid", payload={"of": "mine"})
    svix.endpoint.send_example("py", "hook", example)
    assert json.loads(webhook("/hook", before + 2)[2]) == {"of": "mine"}
    refused(404, lambda: attempt.resend("py", "nothing", "hook"))


def tasks():
    started = [
        svix.endpoint.recover("py", "hook", models.RecoverIn(since=hour_ago, until=None)),
        svix.endpoint.replay_missing("py", "hook", models.ReplayIn(since=hour_ago)),
        svix.endpoint.bulk_replay("py", "hook", models.BulkReplayIn(since=hour_ago, tag="nothing", status=None)),
        svix.statistics.aggregate_app_stats(models.AppUsageStatsIn(since=hour_ago, until=now, app_ids=None)),
        svix.statistics.aggregate_event_types(),
        svix.message.expunge_all_contents("py"),
    ]
    svix.endpoint.delete("py", "failing")
    svix.application.delete("py-1")
    seen = {one.id for one in svix.background_task.list().data}
    assert {one.id for one in started} <= seen, seen
    for one in started:
        over = lambda: svix.background_task.get(one.id).status == models.BackgroundTaskStatus.FINISHED
        waited_for(one.task, over)
    ids = models.BulkExpungeContentsIn(ids=["py-1"])
    svix.message.bulk_expunge_content("py", ids)
    svix.message.expunge_content("py", "py-1")


def operational_webhooks():
    hooks = svix.operational_webhook.endpoint
    made = hooks.create(
        models.OperationalWebhookEndpointIn(url=f"{base}/operations", uid="py-ops", metadata=None, headers=None)
    )
    key = hooks.get_secret(made.id).key
    svix.endpoint.create("py", EndpointIn(url=f"{base}/late", uid="late"))
    _, headers, body = webhook("/operations")
    Webhook(key).verify(body, headers)
    assert json.loads(body)["type"] == "endpoint.created", body
    hooks.rotate_secret(made.id, models.OperationalWebhookEndpointSecretIn(key=None))
    assert hooks.get_secret(made.id).key != key
    hooks.set_headers(made.id, models.OperationalWebhookEndpointHeadersIn(headers={"X-Ops": "1"}))
    assert hooks.get_headers(made.id).headers == {"X-Ops": "1"}
    upsert = models.OperationalWebhookEndpointUpsertIn(url=f"{base}/operations", uid="py-ops")
    assert hooks.upsert("py-ops", upsert).id == made.id
    assert "py-ops" in [one.uid for one in hooks.list().data]
    hooks.delete("py-ops")


def portal():
    access = svix.authentication.app_portal_access(
        "py", models.AppPortalAccessIn(application=None, feature_flags=None, expiry=None, read_only=None)
    )
    customer = Svix(access.token, SvixOptions(server_url=os.environ["POSTHORN_URL"]))
    assert {one.uid for one in customer.endpoint.list("py").data} == {"hook", "late"}
    refused(403, lambda: customer.application.list())
    refused(404, lambda: customer.endpoint.list("py-0"))
    customer.authentication.logout()
    refused(401, lambda: customer.endpoint.list("py"))
    svix.authentication.expire_all("py", models.ApplicationTokenExpireIn(expiry=None))


def environment():
    exported = svix.environment.export()
    types = [EventTypeIn(name=one.name, description=one.description) for one in exported.event_types]
    assert "py.paid" in [one.name for one in types]
    svix.environment.import_(models.EnvironmentIn(event_types=types, settings=None, connectors=None))


for part in [
    health,
    applications,
    event_types,
    endpoints,
    messages,
    attempts,
    tasks,
    operational_webhooks,
    portal,
    environment,
]:
    try:
        part()
    except HttpError as error:
        sys.exit(f"{part.__name__}: {error.status_code} {error.to_dict()} {error.__traceback__.tb_next.tb_lineno}")
