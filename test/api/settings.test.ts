/** `GET /setting`: the settings that a real server was started with, without secrets. */
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { NAMES } from "../../src/config/table.ts"
import { DEFAULT_ORG } from "../../src/core/org.ts"
import { programFile } from "../support/bundled.ts"
import { Program } from "../support/process.ts"
import { ApiServer } from "./support/server.ts"

const SECRETS = {
  POSTHORN_API_KEY: "an-api-key-of-the-operator",
  POSTHORN_ENCRYPTION_KEY: "4".repeat(64),
  POSTHORN_JWT_SECRET: "a-secret-that-signs-tokens-0123456789",
  POSTHORN_ALERTS: JSON.stringify({
    channels: { ops: { kind: "slack", url: "https://hooks.example.com/xoxb" } },
  }),
}

test("each setting has its value and its source, and no secret is shown", async () => {
  const folder = mkdtempSync(join(tmpdir(), "posthorn-settings-"))
  writeFileSync(join(folder, "posthorn.json"), JSON.stringify({ concurrency: 7, logLevel: "error" }))
  const variables = {
    ...SECRETS,
    POSTHORN_LOG_LEVEL: "info",
    POSTHORN_EGRESS_PROXY: "http://user:hunter2@proxy.example.com:3128",
    POSTHORN_METRICS: "off",
  }
  const server = Program.start(programFile("posthorn"), ["serve", "--port", "0", "--host", "127.0.0.1"], {
    under: ["env", "-C", folder, ...Object.entries(variables).map(([name, value]) => `${name}=${value}`)],
  })
  onTestFinished(async () => void (await server.kill()))
  const [, url] = /listens on (http:\S+?),/.exec(await server.line(/listens on http/))!
  const answer = await fetch(`${url}/api/v1/setting`, {
    headers: { authorization: `Bearer ${SECRETS.POSTHORN_API_KEY}` },
  })
  const text = await answer.text()
  const { data } = JSON.parse(text)
  expect(data.map(({ name }: { name: string }) => name)).toEqual(NAMES)
  for (const expected of [
    { name: "port", value: "0", source: "flag", description: "the port to listen on; 0 takes a free one" },
    { name: "concurrency", value: "7", source: "file" },
    { name: "logLevel", value: "info", source: "environment" },
    { name: "pollIntervalMs", value: "5000", source: "default" },
    { name: "schedule", value: null, source: "default" },
    { name: "apiKey", value: "set", source: "environment" },
    { name: "alerts", value: "set", source: "environment" },
    { name: "egress.proxy", source: "environment" },
  ])
    expect(data).toContainEqual(expect.objectContaining(expected))
  for (const secret of [...Object.values(SECRETS), "hunter2", "xoxb"]) expect(text).not.toContain(secret)
})

test("settings are for keys of the default organization, a reading one included", async () => {
  const server = await ApiServer.start({
    inForce: [{ name: "port", value: "80", source: "flag", description: "the port" }],
  })
  await server.posthorn.applications.create({ name: "Acme", uid: "acme" })
  const key = async (input: object, org = DEFAULT_ORG) =>
    (await server.posthorn.tenant(org).keys.create({ name: "x", scope: "admin", ...input })).token
  const ask = async (given: string) => server.call("GET", "/setting", { key: given })
  expect(await ask(server.key)).toMatchObject({
    status: 200,
    body: { data: [{ name: "port", value: "80", source: "flag", description: "the port" }] },
  })
  expect(await ask(await key({}, "org_other"))).toMatchObject({ status: 403 })
  expect(await ask(await key({ scope: "application", appId: "acme" }))).toMatchObject({ status: 403 })
  const { token } = await server.posthorn.keys.create({ name: "reader", scope: "read" })
  expect(await ask(token)).toMatchObject({ status: 200 })
})
