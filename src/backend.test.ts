import { expect, test } from "vitest"
import { openPosthorn } from "./posthorn.ts"

test.each([
  "redis://localhost:99999",
  "redis://localhost:abc",
  "redis://user:p%zz@localhost",
  "rediss://us%er:right@localhost",
  "redis://user:p#ss@localhost",
])("the schedule %s is refused in one sentence that does not repeat it", async (schedule) => {
  // Nobody is at the store's address: the URLs are looked at first.
  const opening = openPosthorn({ store: "postgres://127.0.0.1:1/none", schedule })
  await expect(opening).rejects.toMatchObject({
    code: "invalid_input",
    field: "schedule",
    message:
      'schedule must be the URL of a Redis server, such as "redis://localhost:6379"; in the password, write characters such as # / ? @ % as %23 %2F %3F %40 %25',
  })
})
