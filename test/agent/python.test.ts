/** The example of an agent in Python, in a process of its own. */
import { spawn } from "node:child_process"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { type Language, prepare } from "../api/clients/languages.ts"
import { eventFrame, FakeRelay } from "../support/fake-relay.ts"

const HERE = join(import.meta.dirname, "python")
const EXAMPLE = join(import.meta.dirname, "../../examples/agent.py")
const PYTHON: Language = {
  name: "Python-websockets",
  isLong: false,
  tools: ["python3"],
  manifest: join(HERE, "requirements.txt"),
  install: (packages) => ({
    program: "python3",
    args: ["-m", "pip", "install", "--quiet", "--target", packages, "-r", "requirements.txt"],
    cwd: HERE,
  }),
  start: () => ({ program: "python3", args: [EXAMPLE], cwd: HERE }),
}

const found = await prepare(PYTHON)
if ("missing" in found) console.warn(`WARNING: the agent in Python was NOT tried: ${found.missing}`)
const name =
  "the agent in Python handles events, repeats what was not settled, and ends when its key is revoked"

test.skipIf("missing" in found)(
  "missing" in found ? `${name}, NOT TRIED: ${found.missing}` : name,
  {
    timeout: 60_000,
  },
  async () => {
    if ("missing" in found) return
    const relay = await FakeRelay.start()
    const child = spawn("python3", [EXAMPLE, relay.url, "hub"], {
      env: {
        ...process.env,
        POSTHORN_API_KEY: "ph_1_x",
        PYTHONPATH: found.packages,
        PYTHONDONTWRITEBYTECODE: "1",
      },
    })
    onTestFinished(() => void child.kill("SIGKILL"))
    const written = { stdout: "", stderr: "" }
    for (const stream of ["stdout", "stderr"] as const)
      child[stream].setEncoding("utf8").on("data", (text) => {
        written[stream] += text
      })
    const ended = new Promise((resolve) => child.on("close", resolve))

    const link = await relay.link()
    expect(relay.requests[0]!.headers.authorization).toBe("Bearer ph_1_x")
    expect(link.hello).toEqual({ kind: "hello", agent: "hub", version: "agent.py", credit: 16 })
    const [settled, binary, cut] = [
      eventFrame(),
      eventFrame({ base64: "AP8=" }),
      eventFrame({ path: "/cut" }),
    ]
    link.send(settled)
    const { id, attempt, token } = settled
    const empty = { error: null, retryAfter: null, response: null }
    expect(await link.ack()).toEqual({
      kind: "ack",
      id,
      attempt,
      token,
      result: "success",
      status: 200,
      ...empty,
    })
    link.settle(link.acks[0]!)
    link.raw('{"kind":"news"}')
    link.send(binary)
    link.settle(await link.ack(2))
    link.send(cut)
    await link.ack(3)
    link.cut()
    const second = await relay.link(2)
    second.send({ ...cut, token: "again" })
    expect(await second.ack()).toMatchObject({ id: cut.id, token: "again", result: "success" })
    second.close(4401, "the key was revoked")
    expect([await ended, written.stderr]).toEqual([
      1,
      "the server closed the connection: 4401 the key was revoked\n",
    ])
    expect(written.stdout.split("\n")).toEqual([
      `${id} POST  {"invoice":17}`,
      `${binary.id} POST  \0\ufffd`,
      `${cut.id} POST /cut {"invoice":17}`,
      "",
    ])
  },
)
