/** What holds: flag before environment before file before nothing said. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { flagOf, NAMES, SETTINGS, unknownVariables, variablesOf } from "./config/table.ts"
import { libraryOptions, loadConfig } from "./config.ts"
import { parseOptions } from "./options.ts"

function file(content: unknown): string {
  const folder = mkdtempSync(join(tmpdir(), "posthorn-config-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, "posthorn.json")
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content))
  return path
}

const load = (flags: object, environment = {}) => loadConfig({ flags: { ...flags }, environment })

test("a flag goes before the environment, that before the file, and each says where it came from", () => {
  const config = file({ port: 1, host: "::1", concurrency: 3, egress: { allow: ["10.0.0.0/8"] } })
  const { values, sources } = load({ config, port: "2" }, { POSTHORN_PORT: "3", POSTHORN_CONCURRENCY: "4" })
  expect(values).toMatchObject({ port: 2, concurrency: 4, host: "::1", "egress.allow": ["10.0.0.0/8"] })
  expect(sources).toMatchObject({
    port: "--port",
    concurrency: "POSTHORN_CONCURRENCY",
    host: `host in ${config}`,
    "egress.allow": `egress.allow in ${config}`,
    maxInFlight: null,
  })
})

test("POSTHORN_CONFIG names the file too, PORT the port, and what is empty is not said", () => {
  const POSTHORN_CONFIG = file({ host: "::1" })
  expect(load({}, { POSTHORN_CONFIG, PORT: "80", POSTHORN_STORE: " " }).values).toMatchObject({
    host: "::1",
    port: 80,
    store: "sqlite:./data/posthorn.db",
  })
  expect(load({}, { PORT: "80", POSTHORN_PORT: "81" }).sources.port).toBe("POSTHORN_PORT")
})

test("every kind of value is read from text", () => {
  const { values } = load({
    "no-deliver": true,
    "egress-allow": "10.0.0.0/8, ::1",
    "egress-ports": "443 8443",
    "egress-http": "false",
    "public-url": "https://hooks.example.com/",
    retry: "gateway",
  })
  expect(values).toMatchObject({
    deliver: false,
    "egress.allow": ["10.0.0.0/8", "::1"],
    "egress.ports": [443, 8443],
    "egress.http": false,
    publicUrl: "https://hooks.example.com",
    retry: "gateway",
  })
  expect(libraryOptions(load({ "egress-ports": "any" })).egress).toEqual({ ports: "any" })
})

test.each([
  ["a variable", (policy: object) => load({}, { POSTHORN_RETRY: JSON.stringify(policy) })],
  ["a flag", (policy: object) => load({ retry: JSON.stringify(policy) })],
  ["the file", (policy: object) => load({ config: file({ retry: policy }) })],
])("the retry policy of the engine can be written out in %s", (_where, given) => {
  const policy = { max_attempts: 4, backoff_schedule: [1, 5, 30], timeout: 20, connect_timeout: 5 }
  const config = given(policy)
  expect(SETTINGS.retry.kind.show(config.values.retry)).toBe(JSON.stringify(policy))
  expect(parseOptions(libraryOptions(config)).retry).toMatchObject({
    maxAttempts: 4,
    delays: { list: [1, 5, 30], then: 30 },
    timeout: 20,
    connectTimeout: 5,
  })
})

test.each([
  ["a variable", (text: string) => load({}, { POSTHORN_OWN_OUTAGE: text })],
  ["a flag", (text: string) => load({ "own-outage": text })],
  ["the file", (text: string) => load({ config: file({ ownOutage: JSON.parse(text) }) })],
])("the numbers of an outage of our own can be set, or it is turned off, in %s", (_where, given) => {
  const parsed = (text: string) => parseOptions(libraryOptions(given(text))).ownOutage
  expect(parsed("false")).toBe(null)
  expect(parsed('{"hosts": 5}')).toEqual({ silenceMs: 15_000, endpoints: 10, hosts: 5 })
  expect(SETTINGS.ownOutage.kind.show(given('{"hosts":5}').values.ownOutage)).toBe('{"hosts":5}')
})

test("an outage of our own is true, false or an object", () => {
  for (const text of ["maybe", "[]"])
    expect(() => load({ "own-outage": text })).toThrow(
      `--own-outage must be true or false, or an object as JSON, not "${text}"`,
    )
  expect(() => load({ "own-outage": "{" })).toThrow("--own-outage is not JSON")
  expect(() => load({ config: file({ ownOutage: 3 }) })).toThrow("must be true or false, or an object")
})

test("what nobody says is what the library would take", () => {
  const config = load({})
  const {
    egress: _egress,
    logger: _logger,
    onFatal: _onFatal,
    retry: _retry,
    ...given
  } = parseOptions(libraryOptions(config))
  const { egress, logger, onFatal, retry, ...own } = parseOptions({ store: "sqlite::memory:" })
  expect(given).toEqual(own)
  expect(_retry).toEqual(retry)
})

test.each([
  [{ port: "http" }, {}, '--port must be a whole number, not "http"'],
  [{ port: "70000" }, {}, "--port must be a whole number between 0 and 65535"],
  [{}, { PORT: "-1" }, 'PORT must be a whole number, not "-1"'],
  [{}, { POSTHORN_DELIVER: "no" }, 'POSTHORN_DELIVER must be true or false, not "no"'],
  [{ "log-level": "wran" }, {}, /^--log-level must be one of .*, not "wran"; did you mean warn\?$/],
  [{ retry: "gatway" }, {}, /^--retry must be one of .*; did you mean gateway\?$/],
  [{ retry: "{" }, {}, /^--retry is not JSON: /],
  [{ "public-url": "example.com" }, {}, /^--public-url must be an address such as/],
  [
    { "public-url": "https://me:secret@example.com" },
    {},
    /^--public-url must be an address such as[^\n]*password$/,
  ],
  [{ config: "/nowhere/posthorn.json" }, {}, /^the configuration \/nowhere\/posthorn.json cannot be read/],
])("%j with %j is refused by its name", (flags, environment, sentence) => {
  expect(() => load(flags, environment)).toThrow(sentence)
})

test.each([
  ["{", /^the configuration .*posthorn.json is not JSON: /],
  ["[]", /^the configuration .*posthorn.json must be an object such as/],
  [{ prot: 1 }, /^unknown setting prot in .*posthorn.json; did you mean port\?$/],
  [{ egress: { alow: [] } }, /^unknown setting egress.alow in .*posthorn.json; did you mean egress.allow\?$/],
  [{ port: "80" }, /^port in .*posthorn.json must be a whole number, not "80"$/],
  [{ deliver: "yes" }, /^deliver in .*posthorn.json must be true or false$/],
  [{ egress: { allow: "10.0.0.0/8" } }, /^egress.allow in .*posthorn.json must be a list of texts$/],
  [{ egress: { ports: ["443"] } }, /^egress.ports in .*posthorn.json must be /],
  [{ retry: [1] }, /^retry in .*posthorn.json must be one of /],
  [{ store: 5 }, /^store in .*posthorn.json must be a text$/],
])("a file with %j is refused by its name", (content, sentence) => {
  expect(() => load({ config: file(content) })).toThrow(sentence)
})

test("no secret has a flag, and none is shown", () => {
  const secrets = NAMES.filter((name) => flagOf(name) === null)
  expect(secrets).toEqual(["encryptionKey", "apiKey", "jwtSecret", "alerts"])
  for (const name of secrets) expect(SETTINGS[name].kind.show("hunter2" as never)).toBe("set")
  expect(SETTINGS.store.kind.show("postgres://u:hunter2@h/d?password=hunter2")).toBe("postgres://u@h/d")
})

test("no two settings share a flag or a variable", () => {
  const flags = NAMES.map(flagOf).filter((flag) => flag !== null)
  const variables = NAMES.flatMap(variablesOf)
  expect([new Set(flags).size, new Set(variables).size]).toEqual([flags.length, variables.length])
  expect(variables).toContain("POSTHORN_EGRESS_ALLOW")
  expect(variables).toContain("POSTHORN_MAX_IN_FLIGHT")
})

test("a variable that nothing reads is named, with the one that was probably meant", () => {
  const environment = {
    POSTHORN_EGRES_ALLOW: "127.0.0.0/8",
    POSTHORN_DATABASE_URL: "postgres://db",
    POSTHORN_STORE: "sqlite:x.db",
    POSTHORN_SERVER: "http://localhost:8071",
    POSTHORN_CONFIG: "posthorn.json",
    POSTHORN_SERVICE_HOST: "10.0.0.1",
    POSTHORN_PORT_8071_TCP_ADDR: "10.0.0.1",
    PORT: "80",
    PATH: "/bin",
  }
  expect(unknownVariables(environment)).toEqual([
    "the variable POSTHORN_DATABASE_URL is unknown and has no effect; posthorn config lists the settings",
    "the variable POSTHORN_EGRES_ALLOW is unknown and has no effect; did you mean POSTHORN_EGRESS_ALLOW?",
  ])
  expect(unknownVariables(environment, "POSTHORN_EGRESS_")).toEqual([
    "the variable POSTHORN_EGRES_ALLOW is unknown and has no effect; did you mean POSTHORN_EGRESS_ALLOW?",
  ])
})

test("a secret in the alerts of the file can name a variable, and no error or listing shows one", () => {
  const chat = { kind: "slack", url: { env: "SLACK_URL" } }
  const config = file({ alerts: { channels: { chat, post: { to: ["ops@example.com"] } } } })
  const loaded = load({ config }, { SLACK_URL: "https://hooks.slack.com/s3cret" })
  expect(libraryOptions(loaded).alerts).toEqual({
    channels: {
      chat: { kind: "slack", url: "https://hooks.slack.com/s3cret" },
      post: { to: ["ops@example.com"] },
    },
  })
  expect(SETTINGS.alerts.kind.show(loaded.values.alerts!)).toBe("set")
  expect(flagOf("alerts")).toBeNull()
  expect(() => load({ config })).toThrow(`alerts in ${config} names the variable SLACK_URL, which is not set`)
  expect(() => load({}, { POSTHORN_ALERTS: '{"s3cret' })).toThrow(/^POSTHORN_ALERTS is not JSON$/)
  expect(() => load({}, { POSTHORN_ALERTS: "[]" })).toThrow("POSTHORN_ALERTS must be an object")
})
