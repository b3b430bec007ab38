/**
 * Makes what `upgrade.test.ts` upgrades, with the Posthorn of another folder: a file and a database as a killed process leaves them.
 *
 *   git archive COMMIT | tar -x -C FOLDER        (and npm ci there)
 *   node test/upgrade/make.ts FOLDER postgres://… test/upgrade
 */
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { pathToFileURL } from "node:url"
import { gzipSync } from "node:zlib"
import type * as Library from "../../src/index.ts"
import { Receiver } from "../support/receiver.ts"
import { ENCRYPTION_KEY, type Facts, LATER, RETRY, SECRET } from "./facts.ts"

const [folder, databaseUrl, output] = process.argv.slice(2) as [string, string, string]
const { openPosthorn }: typeof Library = await import(
  pathToFileURL(join(resolve(folder), "src/index.ts")).href
)

async function fill(store: string, receiver: Receiver): Promise<Facts> {
  receiver.always("/dead", 500)
  receiver.always("/failed", 500)
  receiver.always("/hangs", () => {})
  const posthorn = await openPosthorn({
    store,
    retry: RETRY,
    encryptionKey: ENCRYPTION_KEY,
    egress: { allow: ["127.0.0.0/8"], ports: "any" },
    logger: "silent",
  })
  await posthorn.policies.put("patient", { ...RETRY, delays: [7200] })
  await posthorn.applications.create({ uid: "acme", name: "Acme" })
  for (const uid of ["delivered", "dead", "failed", "hangs", "paused", "line", "later", "later-line"])
    await posthorn.endpoints.create("acme", {
      uid,
      url: receiver.url(`/${uid}`),
      eventTypes: [uid],
      secret: SECRET,
      ordered: uid === "line" || uid === "later-line",
      ...(uid === "failed" ? { retry: "patient" } : {}),
    })
  for (const uid of ["paused", "line"]) await posthorn.endpoints.pause("acme", uid)
  const { token } = await posthorn.keys.create({ name: "portal", scope: "application", appId: "acme" })
  const sent: { [uid: string]: string[] } = {}
  const send = async (uid: string, more: object = {}) => {
    const { id } = await posthorn.send("acme", { eventType: uid, payload: { uid }, ...more })
    sent[uid] = [...(sent[uid] ?? []), id]
  }
  for (const uid of ["delivered", "failed", "hangs", "paused", "line", "delivered", "paused", "line", "line"])
    await send(uid)
  await send("dead", { maxAttempts: 1 })
  for (const uid of ["later", "later-line"]) await send(uid, { deliverAt: LATER })
  await receiver.arrived("/hangs", 1)
  for (;;) {
    const { delivered, dead, failed } = await posthorn.stats()
    if (delivered === 2 && dead === 1 && failed === 1) return { token, sent }
  }
}

const files = mkdtempSync(join(tmpdir(), "posthorn-upgrade-"))
const [file, copy] = [join(files, "posthorn.db"), join(files, "copy.db")]
const facts = {
  sqlite: await fill(`sqlite:${file}`, await Receiver.start()),
  postgres: await fill(databaseUrl, await Receiver.start()),
}
new DatabaseSync(file).exec(`VACUUM INTO '${copy}'`)
writeFileSync(join(output, "posthorn.db.gz"), gzipSync(readFileSync(copy), { level: 9 }))
// As statements: psql's own commands are not for a client to send.
const dump = execFileSync("pg_dump", ["--inserts", "--no-owner", "--no-privileges", databaseUrl], {
  encoding: "utf8",
})
writeFileSync(join(output, "posthorn.sql.gz"), gzipSync(dump.replace(/^\\.*$/gm, ""), { level: 9 }))
writeFileSync(join(output, "facts.json"), `${JSON.stringify(facts, null, 2)}\n`)
// As a crash ends it: one request is in flight.
process.exit()
