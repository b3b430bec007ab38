/** Errors of the API become one sentence in the words of the command line; ids stay one piece of a path. */
import { expect, test } from "vitest"
import { Api, ApiFailure, path, sentenceOf } from "./api.ts"
import type { ApiResponse, Call } from "./client.ts"
import { readList } from "./lists.ts"

const NAMES = new Map([
  ["eventType", "--type"],
  ["url", "--url"],
  ["endpoint_id", "--endpoint"],
])

test.each([
  [
    { code: "not_found", detail: 'Entity not found: there is no application "x"' },
    'there is no application "x"',
  ],
  [
    { detail: [{ loc: ["body", "url"], msg: "url must be http or https", type: "" }] },
    "--url must be http or https",
  ],
  [{ detail: [{ loc: ["body", "eventType"], msg: "is required", type: "" }] }, "--type is required"],
  [
    { detail: [{ loc: ["query", "endpoint_id"], msg: "endpoint must be an endpoint's id", type: "" }] },
    "--endpoint must be an endpoint's id",
  ],
  [{ detail: [{ loc: ["body", "uid"], msg: "must match", type: "" }] }, "uid must match"],
  [
    { detail: [{ loc: ["body", "handshake", "kind"], msg: "handshake.kind is required", type: "" }] },
    "handshake.kind is required",
  ],
  [
    {
      detail: [
        { loc: ["body", "eventType"], msg: "is required", type: "" },
        { loc: ["query", "limit"], msg: "limit must be 1", type: "" },
      ],
    },
    "--type is required; limit must be 1",
  ],
  [{ code: "x", detail: "\x1b[2J" }, "\\x1b[2J"],
  [null, "the server answered 500 and did not say why"],
])("%j is said as %j", (body, sentence) => expect(sentenceOf(500, body, NAMES)).toBe(sentence))

test("whatever is typed as an id stays one piece of the path", () => {
  expect(path`/app/${"../key"}/msg/${"a?b#c"}`).toBe("/app/..%2Fkey/msg/a%3Fb%23c")
})

/** Answers from a list, and remembers what was asked. */
function answering(answers: readonly ApiResponse[]) {
  const asked: Call["query"][] = []
  const left = [...answers]
  const client = {
    async call(_method: string, _path: string, { query }: Call) {
      asked.push(query)
      return left.shift()!
    },
    async stream() {
      throw new Error("not asked for")
    },
    async close() {},
  }
  return { api: new Api(client), asked }
}

const page = (data: readonly number[], iterator: string, done: boolean): ApiResponse => ({
  status: 200,
  body: { data, iterator, prevIterator: `-${iterator}`, done },
})

test("an answer that is no success is thrown", async () => {
  const { api } = answering([{ status: 404, body: { code: "not_found", detail: "there is none" } }])
  await expect(api.get("/app/x")).rejects.toThrow(new ApiFailure(404, "there is none"))
})

test("--all follows the iterators to the end, and gives one document", async () => {
  const { api, asked } = answering([page([1, 2], "a", false), page([3], "b", true)])
  expect(await readList(api, "/app", { tag: "x" }, { all: true })).toEqual({
    data: [1, 2, 3],
    iterator: "b",
    prevIterator: "-a",
    done: true,
  })
  expect(asked).toEqual([
    { tag: "x", limit: 250, iterator: undefined },
    { tag: "x", limit: 250, iterator: "a" },
  ])
})

test("--limit over a page's size takes so many and no more", async () => {
  const full = Array.from({ length: 250 }, (_, i) => i)
  const { api, asked } = answering([page(full, "a", false), page(full.slice(0, 50), "b", false)])
  const { data, done } = await readList(api, "/app", {}, { limit: 300, iterator: "z" })
  expect([data.length, done]).toEqual([300, false])
  expect(asked.map((query) => [query!.limit, query!.iterator])).toEqual([
    [250, "z"],
    [50, "a"],
  ])
})
