// Goes through the API with Svix's Go client, as its users do. Ends with the line whose call failed.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"sync"
	"time"

	svix "github.com/svix/svix-webhooks/go"
	"github.com/svix/svix-webhooks/go/models"
	"github.com/svix/svix-webhooks/go/utils"
)

const app = "go"

var ctx = context.Background()

func fail(problem any) {
	_, _, line, _ := runtime.Caller(2)
	fmt.Fprintf(os.Stderr, "main.go:%d: %v\n", line, problem)
	os.Exit(1)
}

func describe(err error) any {
	var refusal *svix.Error
	if errors.As(err, &refusal) {
		return fmt.Sprintf("%v %s", err, refusal.Body())
	}
	return err
}

func must[T any](value T, err error) T {
	if err != nil {
		fail(describe(err))
	}
	return value
}

func done(err error) {
	if err != nil {
		fail(describe(err))
	}
}

func assert(holds bool, seen any) {
	if !holds {
		fail(fmt.Sprintf("%+v", seen))
	}
}

func refused(status int, err error) {
	var refusal *svix.Error
	if !errors.As(err, &refusal) || refusal.Status() != status {
		fail(fmt.Sprintf("no %d: %v", status, err))
	}
}

func ptr[T any](value T) *T { return &value }

type webhook struct {
	headers http.Header
	body    []byte
}

type receiver struct {
	lock     sync.Mutex
	received map[string][]webhook
	arrived  chan struct{}
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.lock.Lock()
	r.received[request.URL.Path] = append(r.received[request.URL.Path], webhook{request.Header, body})
	r.lock.Unlock()
	select {
	case r.arrived <- struct{}{}:
	default:
	}
	if request.URL.Path == "/failing" {
		w.WriteHeader(500)
	}
}

func (r *receiver) count(path string) int {
	r.lock.Lock()
	defer r.lock.Unlock()
	return len(r.received[path])
}

func (r *receiver) webhook(path string, number int) webhook {
	deadline := time.After(30 * time.Second)
	for r.count(path) < number {
		select {
		case <-r.arrived:
		case <-deadline:
			fail(fmt.Sprintf("%s got fewer than %d webhooks", path, number))
		}
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.received[path][number-1]
}

func waitFor(what string, test func() bool) {
	for i := 0; i < 600; i++ {
		if test() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	fail(what + " did not come")
}

func verify(secret string, one webhook) error {
	return must(svix.NewWebhook(secret)).Verify(one.body, one.headers)
}

func main() {
	server := must(url.Parse(os.Getenv("POSTHORN_URL")))
	options := &svix.SvixOptions{ServerUrl: server}
	client := must(svix.New(os.Getenv("POSTHORN_KEY"), options))
	got := &receiver{received: map[string][]webhook{}, arrived: make(chan struct{}, 1)}
	hooks := httptest.NewServer(got)
	hourAgo := time.Now().Add(-time.Hour)

	done(client.Health.Get(ctx))

	// Applications
	made := must(client.Application.Create(ctx, models.ApplicationIn{Name: "Acme", Uid: ptr(app)}, nil))
	same := must(client.Application.GetOrCreate(ctx, models.ApplicationIn{Name: "Acme", Uid: ptr(app)}, nil))
	assert(same.Id == made.Id, same)
	metadata := map[string]string{"tier": "gold"}
	patched := must(client.Application.Patch(ctx, app, models.ApplicationPatch{Metadata: &metadata}))
	assert(patched.Metadata["tier"] == "gold" && *patched.Uid == app, patched)
	must(client.Application.Update(ctx, app, models.ApplicationIn{Name: "Acme Ltd.", Uid: ptr(app)}))
	for i := range 3 {
		other := models.ApplicationIn{Name: "Other", Uid: ptr(fmt.Sprintf("go-%d", i))}
		must(client.Application.Create(ctx, other, nil))
	}
	seen := map[string]bool{}
	pages := &svix.ApplicationListOptions{Limit: ptr(uint64(2))}
	for {
		page := must(client.Application.List(ctx, pages))
		for _, one := range page.Data {
			assert(!seen[one.Id], one)
			seen[one.Id] = true
		}
		if page.Done {
			break
		}
		pages.Iterator = page.Iterator
	}
	assert(len(seen) >= 4, seen)
	done(client.Application.Delete(ctx, "go-2"))
	_, err := client.Application.Get(ctx, "go-2")
	refused(404, err)
	_, err = client.Application.Create(ctx, models.ApplicationIn{Name: "Again", Uid: ptr(app)}, nil)
	refused(409, err)
	_, err = client.Application.Create(ctx, models.ApplicationIn{}, nil)
	refused(422, err)

	// Event types
	must(client.EventType.Create(ctx, models.EventTypeIn{Name: "go.paid", Description: "Paid"}, nil))
	must(client.EventType.Patch(ctx, "go.paid", models.EventTypePatch{Description: ptr("Was paid")}))
	must(client.EventType.Update(ctx, "go.paid", models.EventTypeUpdate{Description: "Paid"}))
	assert(!*must(client.EventType.Get(ctx, "go.paid")).Archived, "archived")
	assert(len(must(client.EventType.List(ctx, nil)).Data) > 0, "no event types")
	spec := map[string]any{"webhooks": map[string]any{"go.imported": map[string]any{"post": map[string]any{}}}}
	must(client.EventType.ImportOpenapi(ctx, models.EventTypeImportOpenApiIn{Spec: &spec}, nil))
	done(client.EventType.Delete(ctx, "go.imported", nil))

	// Endpoints
	in := models.EndpointIn{Url: hooks.URL + "/hook", Uid: ptr("hook")}
	must(client.Endpoint.Create(ctx, app, in, nil))
	patch := models.EndpointPatch{Description: ptr("Hook"), Channels: utils.NewNullableFromPtr[[]string](nil)}
	assert(must(client.Endpoint.Patch(ctx, app, "hook", patch)).Description == "Hook", "not patched")
	update := models.EndpointUpdate{Url: hooks.URL + "/hook", Uid: ptr("hook"), Metadata: &metadata}
	assert(must(client.Endpoint.Update(ctx, app, "hook", update)).Metadata["tier"] == "gold", "not updated")
	assert(len(must(client.Endpoint.List(ctx, app, nil)).Data) == 1, "not one endpoint")
	assert(must(client.Endpoint.Get(ctx, app, "hook")).Url == hooks.URL+"/hook", "another URL")
	headers := models.EndpointHeadersIn{Headers: map[string]string{"X-One": "1"}}
	done(client.Endpoint.UpdateHeaders(ctx, app, "hook", headers))
	headersPatch := models.EndpointHeadersPatchIn{Headers: map[string]string{"X-Two": "2"}, DeleteHeaders: []string{"X-One"}}
	done(client.Endpoint.PatchHeaders(ctx, app, "hook", headersPatch))
	kept := must(client.Endpoint.GetHeaders(ctx, app, "hook"))
	assert(len(kept.Headers) == 1 && kept.Headers["X-Two"] == "2", kept)
	failing := models.EndpointIn{Url: hooks.URL + "/failing", Uid: ptr("failing"), FilterTypes: []string{"go.fails"}}
	must(client.Endpoint.Create(ctx, app, failing, nil))
	old := must(client.Endpoint.GetSecret(ctx, app, "hook")).Key
	done(client.Endpoint.RotateSecret(ctx, app, "hook", models.EndpointSecretRotateIn{}, nil))
	secret := must(client.Endpoint.GetSecret(ctx, app, "hook")).Key
	assert(secret != old, "the same secret")

	// Messages
	first := models.MessageIn{EventType: "go.paid", EventId: ptr("go-1"), Payload: map[string]any{"number": 1}, Tags: []string{"red"}}
	once := &svix.MessageCreateOptions{IdempotencyKey: ptr("go-1")}
	sent := must(client.Message.Create(ctx, app, first, once))
	assert(must(client.Message.Create(ctx, app, first, once)).Id == sent.Id, "sent twice")
	one := got.webhook("/hook", 1)
	done(verify(old, one))
	done(verify(secret, one))
	assert(string(one.body) == `{"number":1}` && one.headers.Get("X-Two") == "2", one)
	one.body = append(one.body, ' ')
	assert(verify(secret, one) != nil, "a changed body was verified")
	must(client.Message.Create(ctx, app, models.MessageIn{EventType: "go.fails", Payload: map[string]any{}}, nil))
	for range 4 {
		other := models.MessageIn{EventType: "go.other", Payload: map[string]any{}, Channels: []string{"c"}}
		must(client.Message.Create(ctx, app, other, nil))
	}
	red := must(client.Message.List(ctx, app, &svix.MessageListOptions{Tag: ptr("red"), After: &hourAgo}))
	assert(len(red.Data) == 1 && red.Data[0].Id == sent.Id, red)
	page := must(client.Message.List(ctx, app, &svix.MessageListOptions{Limit: ptr(uint64(4))}))
	rest := must(client.Message.List(ctx, app, &svix.MessageListOptions{Limit: ptr(uint64(4)), Iterator: page.Iterator}))
	assert(len(page.Data) == 4 && len(rest.Data) == 2 && rest.Done, rest)
	whole := must(client.Message.Get(ctx, app, sent.Id, &svix.MessageGetOptions{WithContent: ptr(true)}))
	assert(whole.Payload["number"] == 1.0, whole)
	check := models.MessagePrecheckIn{EventType: "go.paid"}
	assert(must(client.Message.Precheck(ctx, app, check, nil)).Active, "not active")

	// Attempts
	waitFor("the failed attempt", func() bool {
		failed := must(client.MessageAttempt.ListByEndpoint(ctx, app, "failing", &svix.MessageAttemptListByEndpointOptions{Status: ptr(models.MESSAGESTATUS_FAIL)}))
		return len(failed.Data) == 1 && failed.Data[0].ResponseStatusCode == 500
	})
	var attempt models.MessageAttemptOut
	waitFor("the attempt", func() bool {
		attempts := must(client.MessageAttempt.ListByMsg(ctx, app, sent.Id, nil)).Data
		if len(attempts) > 0 {
			attempt = attempts[0]
		}
		return len(attempts) > 0
	})
	assert(must(client.MessageAttempt.Get(ctx, app, sent.Id, attempt.Id, nil)).Id == attempt.Id, attempt)
	assert(len(must(client.MessageAttempt.ListAttemptedMessages(ctx, app, "hook", nil)).Data) > 0, "no messages")
	assert(len(must(client.MessageAttempt.ListAttemptedDestinations(ctx, app, sent.Id, nil)).Data) == 1, "no destination")
	before := got.count("/hook")
	must(client.MessageAttempt.Resend(ctx, app, sent.Id, "hook", nil))
	got.webhook("/hook", before+1)
	done(client.MessageAttempt.ExpungeContent(ctx, app, sent.Id, attempt.Id))
	assert(must(client.Endpoint.GetStats(ctx, app, "hook", nil)).Success > 0, "no success")
	must(client.Endpoint.SendExample(ctx, app, "hook", models.EventExampleIn{EventType: "svix.ping"}, nil))

	// Tasks
	since := models.RecoverIn{Since: hourAgo}
	recover := must(client.Endpoint.Recover(ctx, app, "hook", since, nil)).Id
	replay := must(client.Endpoint.ReplayMissing(ctx, app, "hook", models.ReplayIn{Since: hourAgo}, nil)).Id
	bulk := must(client.Endpoint.BulkReplay(ctx, app, "hook", models.BulkReplayIn{Since: hourAgo, Tag: ptr("nothing")}, nil)).Id
	stats := must(client.Statistics.AggregateAppStats(ctx, models.AppUsageStatsIn{Since: hourAgo, Until: time.Now()}, nil)).Id
	types := must(client.Statistics.AggregateEventTypes(ctx)).Id
	purge := must(client.Message.ExpungeAllContents(ctx, app, nil)).Id
	done(client.Endpoint.Delete(ctx, app, "failing"))
	done(client.Application.Delete(ctx, "go-1"))
	tasks := map[string]bool{}
	for _, task := range must(client.BackgroundTask.List(ctx, nil)).Data {
		tasks[task.Id] = true
	}
	for _, id := range []string{recover, replay, bulk, stats, types, purge} {
		assert(tasks[id], id)
		waitFor(id, func() bool {
			return must(client.BackgroundTask.Get(ctx, id)).Status == models.BACKGROUNDTASKSTATUS_FINISHED
		})
	}
	done(client.Message.ExpungeContent(ctx, app, sent.Id))

	// Operational webhooks
	operational := client.OperationalWebhook.Endpoint
	ops := must(operational.Create(ctx, models.OperationalWebhookEndpointIn{Url: hooks.URL + "/operations", Uid: ptr("go-ops")}, nil))
	key := must(operational.GetSecret(ctx, ops.Id)).Key
	must(client.Endpoint.Create(ctx, app, models.EndpointIn{Url: hooks.URL + "/late", Uid: ptr("late")}, nil))
	told := got.webhook("/operations", 1)
	done(verify(key, told))
	var event struct{ Type string }
	done(json.Unmarshal(told.body, &event))
	assert(event.Type == "endpoint.created", event)
	done(operational.RotateSecret(ctx, ops.Id, models.OperationalWebhookEndpointSecretIn{}, nil))
	assert(must(operational.GetSecret(ctx, ops.Id)).Key != key, "the same key")
	done(operational.UpdateHeaders(ctx, ops.Id, models.OperationalWebhookEndpointHeadersIn{Headers: map[string]string{"X-Ops": "1"}}))
	assert(must(operational.GetHeaders(ctx, ops.Id)).Headers["X-Ops"] == "1", "no header")
	must(operational.Update(ctx, "go-ops", models.OperationalWebhookEndpointUpdate{Url: hooks.URL + "/operations", Uid: ptr("go-ops")}))
	assert(len(must(operational.List(ctx, nil)).Data) > 0, "none")
	done(operational.Delete(ctx, ops.Id))

	// Portal
	access := must(client.Authentication.AppPortalAccess(ctx, app, models.AppPortalAccessIn{}, nil))
	customer := must(svix.New(access.Token, options))
	assert(len(must(customer.Endpoint.List(ctx, app, nil)).Data) == 2, "not its endpoints")
	_, err = customer.Application.List(ctx, nil)
	refused(403, err)
	_, err = customer.Endpoint.List(ctx, "go-0", nil)
	refused(404, err)
	done(customer.Authentication.Logout(ctx, nil))
	_, err = customer.Endpoint.List(ctx, app, nil)
	refused(401, err)
	done(client.Authentication.ExpireAll(ctx, app, models.ApplicationTokenExpireIn{}, nil))

	// Environment
	exported := must(client.Environment.Export(ctx, nil))
	assert(len(exported.EventTypes) > 0, exported)
	imported := []models.EventTypeIn{{Name: "go.paid", Description: "Paid"}}
	done(client.Environment.Import(ctx, models.EnvironmentIn{EventTypes: imported}, nil))
}
