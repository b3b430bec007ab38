import { expect, test } from "vitest"
import { LogLines } from "../../test/support/log-lines.ts"
import { Trouble } from "./trouble.ts"

function start() {
  const lines = new LogLines()
  const time = { ms: 5000 }
  const texts = { begins: "Redis is away", ends: "Redis is back" }
  const trouble = new Trouble(lines.logger, texts, { where: "redis://a" }, () => time.ms)
  const told = () => lines.all.splice(0).map(({ msg }) => msg)
  return { lines, time, trouble, told }
}

test("an outage has a line when it begins and one when it ends", () => {
  const { lines, time, trouble } = start()
  trouble.passed()
  trouble.failed(new Error("ECONNREFUSED"))
  for (let i = 0; i < 50; i++) {
    time.ms += 1000
    trouble.failed(new Error("ECONNREFUSED"))
  }
  trouble.passed()
  trouble.passed()
  expect(lines.all).toMatchObject([
    { level: 40, msg: "Redis is away", where: "redis://a", err: { message: "ECONNREFUSED" }, lasted_ms: 0 },
    { level: 40, msg: "Redis is back", where: "redis://a", lasted_ms: 50_000 },
  ])
})

test("one that lasts an hour is told of once a minute", () => {
  const { lines, time, trouble } = start()
  for (const end = time.ms + 3_600_000; time.ms < end; time.ms += 500) trouble.failed(new Error("away"))
  expect(lines.all).toHaveLength(60)
  expect(lines.all.at(-1)).toMatchObject({ lasted_ms: 59 * 60_000 })
})

test("one that comes and goes has two lines a minute, and is told of again after that", () => {
  const { time, trouble, told } = start()
  for (const end = time.ms + 60_000; time.ms < end; time.ms += 1000) {
    trouble.failed(new Error("away"))
    trouble.passed()
  }
  expect(told()).toEqual(["Redis is away", "Redis is back"])
  trouble.failed(new Error("away"))
  trouble.passed()
  expect(told()).toEqual(["Redis is away", "Redis is back"])
})

test("it knows the reason while it lasts", () => {
  const { trouble } = start()
  expect(trouble.reason).toBeNull()
  trouble.failed(new Error("first"))
  trouble.failed(new Error("latest"))
  expect(trouble.reason).toEqual(new Error("latest"))
  trouble.passed()
  expect(trouble.reason).toBeNull()
})
