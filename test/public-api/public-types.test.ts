import { join } from "node:path"
import { expect, test } from "vitest"
import { publicTypes } from "./public-types.ts"

test("the public types are those of public-types.txt: `npx vitest run test/public-api -u` accepts a change", async () => {
  const root = join(import.meta.dirname, "../..")
  await expect(publicTypes(root)).toMatchFileSnapshot("public-types.txt")
})
