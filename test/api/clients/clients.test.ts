/**
 * Svix's clients of other languages go through the whole API of a real server: Python's in `npm test`, those that are compiled in
 * `npm run soak`. JavaScript's is in `test/api/sdk`.
 */
import { test } from "vitest"
import { IS_LONG } from "../../support/length.ts"
import { ApiServer } from "../support/server.ts"
import { LANGUAGES, prepare } from "./languages.ts"
import { run } from "./run.ts"

const RUN_MS = 120_000

// Before the tests are named: one that is skipped has the reason in its name.
for (const language of LANGUAGES) {
  if (language.isLong && !IS_LONG) continue
  const found = await prepare(language)
  if ("missing" in found) {
    console.warn(`WARNING: Svix's ${language.name} client was NOT tried: ${found.missing}`)
    test.skip(`Svix's ${language.name} client, NOT TRIED: ${found.missing}`, () => {})
    continue
  }
  test(`Svix's ${language.name} client`, { timeout: RUN_MS + 10_000 }, async () => {
    const server = await ApiServer.start()
    const command = language.start(found.packages)
    const env = { ...command.env, POSTHORN_URL: server.url, POSTHORN_KEY: server.key }
    await run({ ...command, env }, RUN_MS)
  })
}
