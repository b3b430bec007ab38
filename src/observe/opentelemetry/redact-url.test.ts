import { expect, test } from "vitest"
import { redactUrl } from "./redact-url.ts"

test.each([
  ["https://example.com/hooks/17?a=1&b=%20x", "https://example.com/hooks/17?a=1&b=%20x"],
  ["https://me:secret@example.com/", "https://REDACTED:REDACTED@example.com/"],
  ["https://me@example.com/", "https://REDACTED@example.com/"],
  ["https://example.com/?X-Amz-Signature=abc&x=1", "https://example.com/?X-Amz-Signature=REDACTED&x=1"],
  ["https://example.com/?sig=a&sv=2&code=b", "https://example.com/?sig=REDACTED&sv=2&code=REDACTED"],
  ["https://example.com/?%74oken=a=b&api_key=", "https://example.com/?%74oken=REDACTED&api_key=REDACTED"],
  ["https://example.com/?access_token", "https://example.com/?access_token"],
  ["https://example.com/?%zztoken=1", "https://example.com/?%zztoken=REDACTED"],
  ["https://example.com/#token=1", "https://example.com/"],
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
