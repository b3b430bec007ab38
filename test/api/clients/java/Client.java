// Goes through the API with Svix's Java client, as its users do. Ends with the stack of the call that failed.
// Without resend, logout, export and the like: the client itself refuses to send a POST that has no body.
import com.sun.net.httpserver.HttpServer;
import com.svix.Svix;
import com.svix.SvixOptions;
import com.svix.Webhook;
import com.svix.api.*;
import com.svix.exceptions.ApiException;
import com.svix.exceptions.WebhookVerificationException;
import com.svix.models.*;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpHeaders;
import java.nio.charset.StandardCharsets;
import java.time.OffsetDateTime;
import java.util.*;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.function.Consumer;

public class Client {
  static final String APP = "java";

  record Received(HttpHeaders headers, String body) {}

  static final Map<String, List<Received>> received = new HashMap<>();

  static String receive() throws Exception {
    var server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    server.setExecutor(Executors.newCachedThreadPool(task -> {
      var thread = new Thread(task);
      thread.setDaemon(true);
      return thread;
    }));
    server.createContext("/", exchange -> {
      var body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
      var path = exchange.getRequestURI().getPath();
      var headers = HttpHeaders.of(exchange.getRequestHeaders(), (name, value) -> true);
      synchronized (received) {
        received.computeIfAbsent(path, it -> new ArrayList<>()).add(new Received(headers, body));
        received.notifyAll();
      }
      exchange.sendResponseHeaders(path.equals("/failing") ? 500 : 200, -1);
      exchange.close();
    });
    server.start();
    return "http://127.0.0.1:" + server.getAddress().getPort();
  }

  static int count(String path) {
    synchronized (received) {
      return received.getOrDefault(path, List.of()).size();
    }
  }

  static Received webhook(String path, int number) throws Exception {
    var deadline = System.nanoTime() + 30_000_000_000L;
    synchronized (received) {
      while (count(path) < number) {
        check(System.nanoTime() < deadline, path + " got fewer than " + number + " webhooks");
        received.wait(1000);
      }
      return received.get(path).get(number - 1);
    }
  }

  static void check(boolean holds, Object seen) {
    if (!holds) throw new AssertionError(seen);
  }

  static <T> T with(T options, Consumer<T> set) {
    set.accept(options);
    return options;
  }

  static void waitFor(String what, Callable<Boolean> test) throws Exception {
    for (int i = 0; i < 600; i++) {
      if (test.call()) return;
      Thread.sleep(50);
    }
    throw new AssertionError(what + " did not come");
  }

  static void refused(int status, Callable<?> call) throws Exception {
    try {
      call.call();
    } catch (ApiException refusal) {
      check(refusal.getCode() == status, refusal);
      return;
    }
    throw new AssertionError("no " + status);
  }

  public static void main(String[] args) throws Exception {
    try {
      everything();
      System.exit(0);
    } catch (Throwable problem) {
      problem.printStackTrace();
      System.exit(1);
    }
  }

  static Svix client(String key) {
    var options = new SvixOptions();
    options.setServerUrl(System.getenv("POSTHORN_URL"));
    return new Svix(key, options);
  }

  static void everything() throws Exception {
    var svix = client(System.getenv("POSTHORN_KEY"));
    var base = receive();
    var now = OffsetDateTime.now();
    var hourAgo = now.minusHours(1);

    var apps = svix.getApplication();
    var app = apps.create(new ApplicationIn().name("Acme").uid(APP));
    check(apps.getOrCreate(new ApplicationIn().name("Acme").uid(APP)).getId().equals(app.getId()), app);
    var patched = apps.patch(APP, new ApplicationPatch().metadata(Map.of("tier", "gold")));
    check(patched.getMetadata().equals(Map.of("tier", "gold")) && patched.getUid().equals(APP), patched);
    check(apps.update(APP, new ApplicationIn().name("Acme Ltd.").uid(APP)).getName().equals("Acme Ltd."), "name");
    for (int i = 0; i < 3; i++) apps.create(new ApplicationIn().name("Other").uid("java-" + i));
    var seen = new HashSet<String>();
    var pages = with(new ApplicationListOptions(), it -> it.setLimit(2L));
    while (true) {
      var page = apps.list(pages);
      for (var one : page.getData()) check(seen.add(one.getId()), one);
      if (page.getDone()) break;
      pages.setIterator(page.getIterator());
    }
    check(seen.size() >= 4, seen);
    apps.delete("java-2");
    refused(404, () -> apps.get("java-2"));
    refused(409, () -> apps.create(new ApplicationIn().name("Again").uid(APP)));
    refused(422, () -> apps.create(new ApplicationIn().name("")));

    var types = svix.getEventType();
    types.create(new EventTypeIn().name("java.paid").description("Paid"));
    check(types.patch("java.paid", new EventTypePatch().description("B")).getDescription().equals("B"), "patch");
    types.update("java.paid", new EventTypeUpdate().description("Paid"));
    check(!types.get("java.paid").getArchived(), "archived");
    check(!types.list().getData().isEmpty(), "no event types");
    var spec = Map.<String, Object>of("webhooks", Map.of("java.imported", Map.of("post", Map.of())));
    types.importOpenapi(new EventTypeImportOpenApiIn().spec(spec));
    types.delete("java.imported");

    var endpoints = svix.getEndpoint();
    endpoints.create(APP, new EndpointIn().url(URI.create(base + "/hook")).uid("hook"));
    check(endpoints.patch(APP, "hook", new EndpointPatch().description("Hook")).getDescription().equals("Hook"), "patch");
    var update = new EndpointUpdate().url(URI.create(base + "/hook")).uid("hook").metadata(Map.of("a", "b"));
    check(endpoints.update(APP, "hook", update).getMetadata().equals(Map.of("a", "b")), "update");
    check(endpoints.list(APP).getData().size() == 1, "not one endpoint");
    check(endpoints.get(APP, "hook").getUrl().toString().equals(base + "/hook"), "another URL");
    endpoints.updateHeaders(APP, "hook", new EndpointHeadersIn().headers(Map.of("X-One", "1")));
    var headers = new EndpointHeadersPatchIn().headers(Map.of("X-Two", "2")).deleteHeaders(List.of("X-One"));
    endpoints.patchHeaders(APP, "hook", headers);
    check(endpoints.getHeaders(APP, "hook").getHeaders().equals(Map.of("X-Two", "2")), "headers");
    var failing = new EndpointIn().url(URI.create(base + "/failing")).uid("failing");
    endpoints.create(APP, failing.filterTypes(Set.of("java.fails")));
    var old = endpoints.getSecret(APP, "hook").getKey();
    endpoints.rotateSecret(APP, "hook", new EndpointSecretRotateIn());
    var secret = endpoints.getSecret(APP, "hook").getKey();
    check(!secret.equals(old), "the same secret");

    var messages = svix.getMessage();
    var first = new MessageIn().eventType("java.paid").eventId("java-1").payload("{\"number\":1}").tags(Set.of("red"));
    var once = with(new MessageCreateOptions(), it -> it.setIdempotencyKey("java-1"));
    var sent = messages.create(APP, first, once);
    check(messages.create(APP, first, once).getId().equals(sent.getId()), "sent twice");
    var hook = webhook("/hook", 1);
    for (var key : List.of(old, secret)) new Webhook(key).verify(hook.body, hook.headers.map());
    check(hook.body.equals("{\"number\":1}"), hook);
    check(hook.headers.firstValue("X-Two").orElse("").equals("2"), hook);
    try {
      new Webhook(secret).verify(hook.body + " ", hook.headers.map());
      throw new AssertionError("a changed body was verified");
    } catch (WebhookVerificationException expected) {
    }
    messages.create(APP, new MessageIn().eventType("java.fails").payload("{}"));
    for (int i = 0; i < 4; i++)
      messages.create(APP, new MessageIn().eventType("java.other").payload("{}").channels(Set.of("c")));
    var tagged = with(new MessageListOptions(), it -> it.setTag("red"));
    tagged.setAfter(hourAgo);
    var red = messages.list(APP, tagged).getData();
    check(red.size() == 1 && red.get(0).getId().equals(sent.getId()), red);
    var four = with(new MessageListOptions(), it -> it.setLimit(4L));
    var page = messages.list(APP, four);
    four.setIterator(page.getIterator());
    var rest = messages.list(APP, four);
    check(page.getData().size() == 4 && rest.getData().size() == 2 && rest.getDone(), rest);
    var content = with(new MessageGetOptions(), it -> it.setWithContent(true));
    check(messages.get(APP, sent.getId(), content).getPayload().toString().contains("number"), "payload");
    check(messages.precheck(APP, new MessagePrecheckIn().eventType("java.paid")).getActive(), "not active");

    var attempts = svix.getMessageAttempt();
    var fails = with(new MessageAttemptListByEndpointOptions(), it -> it.setStatus(MessageStatus.FAIL));
    waitFor("the failed attempt", () -> attempts.listByEndpoint(APP, "failing", fails).getData().size() == 1);
    waitFor("the attempt", () -> !attempts.listByMsg(APP, sent.getId()).getData().isEmpty());
    var attempt = attempts.listByMsg(APP, sent.getId()).getData().get(0).getId();
    check(attempts.get(APP, sent.getId(), attempt).getId().equals(attempt), attempt);
    check(!attempts.listAttemptedMessages(APP, "hook").getData().isEmpty(), "no messages");
    check(attempts.listAttemptedDestinations(APP, sent.getId()).getData().size() == 1, "no destination");
    attempts.expungeContent(APP, sent.getId(), attempt);
    check(endpoints.getStats(APP, "hook").getSuccess() > 0, "no success");
    endpoints.sendExample(APP, "hook", new EventExampleIn().eventType("svix.ping"));

    var started = List.of(
        endpoints.recover(APP, "hook", new RecoverIn().since(hourAgo)).getId(),
        endpoints.replayMissing(APP, "hook", new ReplayIn().since(hourAgo)).getId(),
        endpoints.bulkReplay(APP, "hook", new BulkReplayIn().since(hourAgo).tag("nothing")).getId(),
        svix.getStatistics().aggregateAppStats(new AppUsageStatsIn().since(hourAgo).until(now)).getId());
    endpoints.delete(APP, "failing");
    apps.delete("java-1");
    var tasks = svix.getBackgroundTask();
    var listed = tasks.list().getData().stream().map(BackgroundTaskOut::getId).toList();
    check(listed.containsAll(started), listed);
    for (var id : started) waitFor(id, () -> tasks.get(id).getStatus() == BackgroundTaskStatus.FINISHED);
    messages.expungeContent(APP, sent.getId());

    var operational = svix.getOperationalWebhookEndpoint();
    var url = URI.create(base + "/operations");
    var ops = operational.create(new OperationalWebhookEndpointIn().url(url).uid("java-ops"));
    var key = operational.getSecret(ops.getId()).getKey();
    endpoints.create(APP, new EndpointIn().url(URI.create(base + "/late")).uid("late"));
    var told = webhook("/operations", 1);
    new Webhook(key).verify(told.body, told.headers.map());
    check(told.body.contains("\"endpoint.created\""), told);
    operational.rotateSecret(ops.getId(), new OperationalWebhookEndpointSecretIn());
    check(!operational.getSecret(ops.getId()).getKey().equals(key), "the same key");
    operational.updateHeaders(ops.getId(), new OperationalWebhookEndpointHeadersIn().headers(Map.of("X-Ops", "1")));
    check(operational.getHeaders(ops.getId()).getHeaders().equals(Map.of("X-Ops", "1")), "headers");
    operational.update("java-ops", new OperationalWebhookEndpointUpdate().url(url).uid("java-ops"));
    check(!operational.list().getData().isEmpty(), "none");
    operational.delete(ops.getId());

    var access = svix.getAuthentication().appPortalAccess(APP, new AppPortalAccessIn());
    var customer = client(access.getToken());
    check(customer.getEndpoint().list(APP).getData().size() == 2, "not its endpoints");
    refused(403, () -> customer.getApplication().list());
    refused(404, () -> customer.getEndpoint().list("java-0"));
    svix.getAuthentication().expireAll(APP, new ApplicationTokenExpireIn());
    refused(401, () -> customer.getEndpoint().list(APP));

    var environment = new Environment(svix.getHttpClient());
    var imported = List.of(new EventTypeIn().name("java.paid").description("Paid"));
    environment.import_(new EnvironmentIn().eventTypes(imported));
  }
}
