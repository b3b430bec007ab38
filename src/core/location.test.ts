import { expect, test } from "vitest"
import { withoutPassword } from "./location.ts"

test.for([
  [
    "postgres://ada:hush@db.example.com:5433/posthorn?password=hush#hush",
    "postgres://ada@db.example.com:5433/posthorn",
  ],
  ["rediss://:hush@redis.example.com/2", "rediss://redis.example.com/2"],
  ["sqlite:/var/lib/posthorn.db?mode=rw", "sqlite:/var/lib/posthorn.db?mode=rw"],
  ["posthorn.db", "posthorn.db"],
  ["postgres://ada:hu#sh@db.example.com/posthorn", "postgres://…"],
])("%s is shown as %s", ([location, shown]) => {
  expect(withoutPassword(location!)).toBe(shown)
})
