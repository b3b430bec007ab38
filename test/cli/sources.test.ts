/** `posthorn sources`: what is shown, and what is asked for. */
import { expect, test } from "vitest"
import { World } from "./world.ts"

const FIELD = (name: string, stdout: string) => new RegExp(`^${name} +(.*)$`, "m").exec(stdout)?.[1]

test("a source is created with a secret from standard input, and its URL takes a webhook in", async () => {
  const { server, desk } = await World.start()
  const created = await desk.posthorn(
    [
      "sources",
      "create",
      "acme",
      "gitlab",
      "--scheme",
      "gitlab",
      "--secret-file",
      "-",
      "--type",
      "header:X-Gitlab-Event",
    ],
    { input: "s3cret\n" },
  )
  expect(created.stderr).toBe("")
  expect(created.stdout).not.toContain("s3cret")
  const url = FIELD("url", created.stdout)!
  expect(url).toMatch(`${server.url}/in/`)
  expect(FIELD("eventType", created.stdout)).toBe("header:x-gitlab-event")
  const send = (token: string) =>
    fetch(`${url}/deep`, {
      method: "POST",
      body: "{}",
      headers: { "X-Gitlab-Token": token, "X-Gitlab-Event": "Push Hook" },
    })
  expect((await send("s3cret")).status).toBe(202)
  expect((await send("wrong")).status).toBe(401)
  const [message] = (await server.posthorn.messages.list("acme")).data
  const shown = await desk.posthorn(["messages", "get", "acme", message!.id])
  expect(FIELD("source", shown.stdout)).toBe(message!.inbound!.sourceId)
  expect(FIELD("request", shown.stdout)).toBe("POST /deep")
  expect(FIELD("X-Gitlab-Event", shown.stdout)).toBe("Push Hook")
  await server.posthorn.context.receiver.flush()
  const { stdout } = await desk.posthorn(["sources", "activity", "acme", "gitlab"])
  expect(FIELD("accepted", stdout)).toBe("1")
  expect(FIELD("refused", stdout)).toBe("1 signature")
  expect(stdout).toMatch(/REASON .*\n.* signature \(mismatch\) +POST +\/deep +127\.0\.0\.1/)
  const list = await desk.posthorn(["sources", "list", "acme"])
  expect(list.stdout).toMatch(/gitlab +gitlab +header:x-gitlab-event +on/)
  expect(list.stdout).toMatch(/github +github +inbound\.github +on/)
})

test("handshakes and duplicates are set by a word, and taken away by one", async () => {
  const { server, desk } = await World.start()
  const source = async () => (await server.call("GET", "/app/acme/source/github")).body
  const update = (...flags: string[]) => desk.posthorn(["sources", "update", "acme", "github", ...flags])
  expect((await update("--verify-token", "t", "--duplicates", "pointer:/entry/0/id", "--disable")).code).toBe(
    0,
  )
  expect(await source()).toMatchObject({
    handshake: { kind: "meta" },
    deduplication: { pointer: "/entry/0/id" },
    enabled: false,
  })
  expect((await update("--handshake", "none", "--duplicates", "off", "--enable")).code).toBe(0)
  expect(await source()).toMatchObject({ handshake: null, deduplication: "off", enabled: true })
})

test("what is missing or wrong is said before anything is done", async () => {
  const { desk } = await World.start()
  for (const [args, sentence] of [
    [["create", "acme", "a"], "--scheme is missing"],
    [["create", "acme", "a", "--scheme", "gihub"], "must be one of"],
    [
      ["create", "acme", "a", "--scheme", "none", "--type", "body:/x"],
      "must be header:NAME or pointer:/PATH",
    ],
    [["create", "acme", "a", "--scheme", "github"], "--secret"],
    [["rotate", "acme", "github"], "the new secret is missing"],
    [["update", "acme", "github"], "there is nothing to change"],
    [["delete", "acme", "github"], "took nothing in lately"],
  ] as const) {
    const { code, stderr } = await desk.posthorn(["sources", ...args])
    expect([args, code]).not.toEqual([args, 0])
    expect(stderr).toContain(sentence)
  }
})

test("two flags that exclude each other are refused", async () => {
  const { desk } = await World.start()
  for (const [args, sentence] of [
    [["rotate", "--secret", "a", "--secret-file", "-"], "give one of them"],
    [["update", "--secret", "a", "--secret-file", "-"], "give one of them"],
    [["update", "--handshake", "none", "--verify-token", "t"], "of the handshake meta"],
  ] as const) {
    const [action, ...flags] = args
    const { code, stderr } = await desk.posthorn(["sources", action, "acme", "github", ...flags])
    expect([args, code]).toEqual([args, 2])
    expect(stderr).toContain(sentence)
  }
})

test("on a local store the URL is that of a server on this machine", async () => {
  const { desk } = await World.empty()
  const local = { environment: { POSTHORN_SERVER: "", POSTHORN_API_KEY: "", PORT: "9071" } }
  await desk.posthorn(["apps", "create", "Acme", "--uid", "acme"], local)
  const { stdout, stderr } = await desk.posthorn(
    ["sources", "create", "acme", "a", "--scheme", "none"],
    local,
  )
  expect(stderr).toBe("")
  expect(FIELD("url", stdout)).toMatch(/^http:\/\/localhost:9071\/in\/\w{59}$/)
})
