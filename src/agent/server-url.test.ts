import { expect, test } from "vitest"
import { clearTextWarning, relayUrl } from "./server-url.ts"

test.each([
  ["wss://hooks.example.com", "wss://hooks.example.com/api/v1/relay"],
  ["https://hooks.example.com/", "wss://hooks.example.com/api/v1/relay"],
  ["http://localhost:8071", "ws://localhost:8071/api/v1/relay"],
  ["ws://[::1]:8071/", "ws://[::1]:8071/api/v1/relay"],
  ["https://example.com/posthorn", "wss://example.com/posthorn/api/v1/relay"],
  ["https://example.com/posthorn/", "wss://example.com/posthorn/api/v1/relay"],
  ["https://example.com/posthorn/api/v1", "wss://example.com/posthorn/api/v1/relay"],
  ["https://example.com/api/v1/", "wss://example.com/api/v1/relay"],
  ["wss://example.com/api/v1/relay", "wss://example.com/api/v1/relay"],
])("%s is %s", (server, url) => {
  expect(relayUrl(server).href).toBe(url)
})

test.each([
  "",
  "hooks.example.com",
  "localhost:8071",
  "ftp://example.com",
  "https://user:password@example.com",
  "https://example.com?key=1",
  "https://example.com#x",
  "file:///x",
])("%j is no server", (server) => {
  expect(() => relayUrl(server)).toThrow("server must be a URL such as wss://hooks.example.com")
})

test("only a connection to another machine without TLS is warned of", () => {
  const warning = (server: string) => clearTextWarning(relayUrl(server))
  for (const server of [
    "https://a.example",
    "http://localhost:1",
    "http://127.9.9.9",
    "ws://[::1]",
    "ws://a.localhost",
  ])
    expect(warning(server)).toBeNull()
  const clear = "the key and all webhooks travel to hub.example in the clear: use wss:// or https://"
  expect(warning("ws://hub.example:80/")).toBe(clear)
  expect(warning("http://hub.example/")).toBe(clear)
  expect(warning("http://127.evil.example")).not.toBeNull()
})
