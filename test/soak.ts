/** `npm run soak`: the long versions of the tests that `npm test` runs short, one after the other, until the time is over. */
import { spawnSync } from "node:child_process"
import { parseArgs } from "node:util"

const USAGE = `npm run soak -- [--minutes 60] [--passes 1000] [--list] [--help]

Runs the long versions of what npm test runs short: kills, chaos, crash images, random lives, made-up requests,
clients in other languages, and the HTTP client against real servers. Each step has new seeds, and prints those of a failure.

  --minutes  no step begins after so many minutes (60)
  --passes   how often all steps run at most (1000)
  --list     names the steps and runs none`

interface Step {
  readonly name: string
  readonly args: readonly string[]
}

const VITEST = ["node_modules/vitest/vitest.mjs", "run"]
const TORTURE = "test/kill/torture.ts"
const test = (name: string, project: string, ...files: string[]): Step => ({
  name: `${name} (${project})`,
  args: [...VITEST, "--project", project, ...files],
})

const STEPS: readonly Step[] = [
  ...["behaviour", "postgres", "redis"].map((project) =>
    test("kills and random lives", project, "test/kill", "test/model"),
  ),
  test("chaos with several workers", "behaviour", "test/multi-process/chaos", "test/multi-process/healthy"),
  test("a lane that is blocked with a million rows", "timing", "test/multi-process/blocked-lane"),
  test("PostgreSQL restarted again and again", "timing", "test/faults/08-postgres-restarts"),
  test("Redis killed again and again", "behaviour", "test/faults/12-redis-killed"),
  test("crash images", "behaviour", "test/crash"),
  { name: "crash images of random faults", args: [TORTURE, "--rounds", "20", "--images", "40"] },
  test("made-up and interrupted requests", "behaviour", "test/api/fuzz", "test/api/kill"),
  test("clients in other languages", "behaviour", "test/api/clients"),
  { name: "the HTTP client against real servers", args: ["test/interop/main.ts"] },
]

function wholeNumber(flag: string, text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${flag} is a whole number from 1 up`)
  return value
}

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "60" },
    passes: { type: "string", default: "1000" },
    list: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
})
if (values.help) console.log(USAGE)
else if (values.list) console.log(STEPS.map(({ name, args }) => `${name}: node ${args.join(" ")}`).join("\n"))
else soak(wholeNumber("minutes", values.minutes), wholeNumber("passes", values.passes))

function soak(minutes: number, passes: number): void {
  const begun = performance.now()
  const minutesPassed = () => (performance.now() - begun) / 60_000
  for (let pass = 1; pass <= passes; pass++)
    for (const { name, args } of STEPS) {
      if (minutesPassed() >= minutes) {
        console.log(`soak: ${minutes} minutes are over in pass ${pass}, and nothing has failed`)
        return
      }
      console.log(`soak: pass ${pass}, minute ${Math.floor(minutesPassed())}: ${name}`)
      const env = { ...process.env, POSTHORN_TEST_LONG: "1" }
      const { status, signal } = spawnSync(process.execPath, args, { stdio: "inherit", env })
      if (status === 0) continue
      console.error(`soak: "${name}" ended with ${signal ?? status}`)
      process.exitCode = 1
      return
    }
  console.log(`soak: ${passes} passes are over, and nothing has failed`)
}
