/** The server's certificate: refused with a sentence that says what to do, and accepted with its authority. */
import { expect, test } from "vitest"
import { Authority } from "../egress/certificates.ts"
import { AgentBench } from "../support/agents.ts"
import { FakeRelay } from "../support/fake-relay.ts"

const names = "IP:127.0.0.1"
const TRUST = "give its authority with NODE_EXTRA_CA_CERTS=FILE, or with the agent's own --ca FILE"
const UNTRUSTED = "no authority that this machine trusts has signed it"

test.each([
  ["its own", "DEPTH_ZERO_SELF_SIGNED_CERT"],
  ["an unknown authority's", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"],
])("a certificate with %s signature is refused, and accepted with ca", async (whose, code) => {
  const authority = new Authority()
  const isOwn = whose === "its own"
  const tls = isOwn ? authority.selfSigned("relay", names) : authority.certificate("relay", { names })
  const relay = await FakeRelay.start({ tls })
  const bench = new AgentBench(relay)
  const origin = relay.url.replace("wss", "https")
  expect((await bench.reconnect()).reason).toBe(
    `the certificate of ${origin} is refused: ${UNTRUSTED} (${code}); ${TRUST}`,
  )
  await bench.report("disconnected", 2)
  const trusting = new AgentBench(relay, { ca: isOwn ? tls.cert : authority.cert })
  await trusting.report("connected")
  expect(relay.links).toHaveLength(1)
})

test.each([
  ["has expired", { names, expired: true }, "it has expired"],
  ["is for another name", { names: "DNS:hooks.example.com" }, "it is for other names"],
])("a certificate that %s is refused", async (_what, options, problem) => {
  const authority = new Authority()
  const relay = await FakeRelay.start({ tls: authority.certificate("relay", options) })
  const bench = new AgentBench(relay, { ca: authority.cert })
  expect((await bench.report("disconnected")).reason).toMatch(new RegExp(`is refused: ${problem}$`))
})
