/**
 * Fault 3, for a power cut: a killed process cannot show a sync that is missing, since the kernel keeps what was written. So this looks
 * at the order of the system calls: a send may be answered only after what it wrote into the log was synced.
 */
import { readFileSync } from "node:fs"
import { expect, onTestFinished, test } from "vitest"
import { Campaign, SENDERS } from "../kill/campaign.ts"
import { seeded } from "../kill/random.ts"
import { withTrace } from "./strace.ts"

const MESSAGES = 5

test("no send is answered before a sync that began after its message was written to the log has ended", async () => {
  const campaign = await Campaign.start(seeded(1))
  onTestFinished(() => campaign.close())
  const log = `${campaign.file}.trace`
  await campaign.finish(MESSAGES, withTrace(log))
  const { answered, early } = read(readFileSync(log, "latin1").split("\n"))
  expect(early).toEqual([])
  expect(answered).toHaveLength(MESSAGES * SENDERS)
})

/** A line is `<thread> <call>(<descriptor><file>, <content>…`; a call that others came in between of ends in a line `<... call resumed>`. */
function read(lines: readonly string[]): { answered: string[]; early: string[] } {
  let written = new Set<string>()
  const syncing = new Map<string, Set<string>>()
  const synced = new Set<string>()
  const answered: string[] = []
  const early: string[] = []
  for (const line of lines) {
    const thread = line.slice(0, line.indexOf(" "))
    const ids = line.match(/msg_[0-9A-Za-z]{27}/g) ?? []
    if (/ pwrite64\(\d+<[^>]*-wal>/.test(line)) for (const id of ids) written.add(id)
    if (/ f(data)?sync\(\d+<[^>]*-wal>/.test(line)) {
      syncing.set(thread, written)
      written = new Set()
    }
    if (/ f(data)?sync.* = 0$/.test(line)) {
      for (const id of syncing.get(thread) ?? []) synced.add(id)
      syncing.delete(thread)
    }
    if (/ write\(1<[^>]*>, "accepted /.test(line)) {
      answered.push(...ids)
      early.push(...ids.filter((id) => !synced.has(id)))
    }
  }
  return { answered, early }
}
