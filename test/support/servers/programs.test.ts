import { expect, onTestFinished, test, vi } from "vitest"
import { temporaryFolder } from "../harness.ts"
import provideServers from "./global-setup.ts"
import { freePort } from "./port.ts"
import { requireRedis } from "./programs.ts"

function setVariable(name: string, value: string): void {
  vi.stubEnv(name, value)
  onTestFinished(() => void vi.unstubAllEnvs())
}

test("a server that is neither here nor can be installed is asked for, by package and by variable", () => {
  setVariable("PATH", temporaryFolder())
  expect(() => requireRedis()).toThrow(
    'the tests need redis-server, which is not on this machine and could not be installed: run "apt-get install redis-server" ' +
      "as root (or install it in your system's way), or set POSTHORN_TEST_REDIS_URL to the URL of a running server",
  )
})

test.each([
  ["POSTHORN_TEST_POSTGRES_URL", "postgres://someone:secret@127.0.0.1"],
  ["POSTHORN_TEST_REDIS_URL", "redis://:secret@127.0.0.1"],
])("a URL in %s at which no server answers fails the run at once, and its password stays out of the text", async (name, url) => {
  setVariable(name, `${url}:${await freePort()}`)
  const failing = provideServers()
  await expect(failing).rejects.toThrow(`no server answers at the URL in ${name}: `)
  await expect(failing).rejects.not.toThrow("secret")
})

test("servers that the run was told of are used as they are, and left alone", async () => {
  const given = [process.env.POSTHORN_TEST_POSTGRES_URL, process.env.POSTHORN_TEST_REDIS_URL]
  const close = await provideServers()
  expect([process.env.POSTHORN_TEST_POSTGRES_URL, process.env.POSTHORN_TEST_REDIS_URL]).toEqual(given)
  await close()
  await (await provideServers())()
})
