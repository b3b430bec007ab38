import { expect, test } from "vitest"
import { Connection } from "./connection.ts"

test("a statement is prepared once, and as many are kept as a program has, not as many as there are numbers", () => {
  const connection = new Connection(":memory:")
  const one = connection.sql("SELECT 1 AS n")
  expect(connection.sql("SELECT 1 AS n")).toBe(one)
  for (let n = 2; n <= 1002; n++) connection.sql(`SELECT ${n} AS n`)
  expect(connection.sql("SELECT 1 AS n")).not.toBe(one)
  expect(one.get()).toEqual({ n: 1 })
  connection.close()
})
