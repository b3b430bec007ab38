import { expect, test } from "vitest"
import { redactUrl } from "./redact-url.ts"

test.each([
  ["https://me:secret@example.com/", "https://REDACTED:REDACTED@example.com/"],
  ["https://me@example.com/", "https://REDACTED@example.com/"],
  ["https://example.com/#token=1", "https://example.com/"],

  ["https://example.com/?a=1&b=%20x", "https://example.com/?a=REDACTED&b=REDACTED"],
  ["https://example.com/?jwt=eyJhbGciOi.eyJz.c2ln", "https://example.com/?jwt=REDACTED"],
  ["https://example.com/?hmac=abc&pw=x", "https://example.com/?hmac=REDACTED&pw=REDACTED"],
  ["https://example.com/?%zztoken=1&a=b=c", "https://example.com/?%zztoken=REDACTED&a=REDACTED"],
  ["https://example.com/?sk_live_abc", "https://example.com/?REDACTED"],
  ["https://example.com/?sk_live_abc&&a=1", "https://example.com/?REDACTED&&a=REDACTED"],
  ["https://example.com/?c2VjcmV0cw==", "https://example.com/?REDACTED"],
  ["https://example.com/?4f9b2c7d1e8a6f3b5c0d=1", "https://example.com/?REDACTED"],

  ["https://example.com/webhooks/orders", "https://example.com/webhooks/orders"],
  ["https://example.com/hooks/17/b%C3%BCcher/", "https://example.com/hooks/17/b%C3%BCcher/"],
  [
    "https://example.com/v2/order-notifications-received",
    "https://example.com/v2/order-notifications-received",
  ],
  [
    "https://hooks.slack.com/services/T0000/B0000/XXXXXXXXXXXXXXXXXXXXXXXX",
    "https://hooks.slack.com/services/T0000/B0000/REDACTED",
  ],
  [
    "https://discord.com/api/webhooks/119384/kQ-3xV_9dLmPz7RtYw2-bNc4",
    "https://discord.com/api/webhooks/119384/REDACTED",
  ],
  ["https://example.com/in/0b7c1f6e-93d2-4a58-8e1b-5f20c9d7a364/x", "https://example.com/in/REDACTED/x"],
  ["https://example.com/in/aB3dE6gH", "https://example.com/in/REDACTED"],
  ["https://example.com/in/4f9b2c7d1e8a", "https://example.com/in/REDACTED"],
  ["https://example.com/in/20311231/4f9b2c7d1e8", "https://example.com/in/20311231/4f9b2c7d1e8"],
  ["https://example.com/sk_live_abc/whsec_x/xoxb-1/ghp_a", `https://example.com${"/REDACTED".repeat(4)}`],
  ["https://example.com/skills/ghost/xoxo", "https://example.com/skills/ghost/xoxo"],
  ["https://example.com/in/%61B3dE6g%48", "https://example.com/in/REDACTED"],
])("%s is shown as %s", (url, full) => {
  expect(redactUrl(url)?.full).toBe(full)
})

test("host and port are those of the connection", () => {
  expect(redactUrl("http://example.com/")).toMatchObject({ host: "example.com", port: 80 })
  expect(redactUrl("https://[2001:db8::1]:8443/")).toMatchObject({ host: "2001:db8::1", port: 8443 })
  expect(redactUrl("https://example.com")).toMatchObject({ port: 443 })
})

test("a URL of another scheme has no host to connect to", () => {
  expect(redactUrl("notify:oncall")).toBe(null)
  expect(redactUrl("no url")).toBe(null)
})
