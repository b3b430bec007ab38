import { configDefaults, defineConfig } from "vitest/config"

/** Tests that compare times run by themselves, one after the other, so that the others do not disturb them. */
const TIMING = "**/*.timing.test.ts"
const timeouts = { testTimeout: 30_000, hookTimeout: 30_000 }

export default defineConfig({
  test: {
    projects: [
      { test: { ...timeouts, name: "behaviour", exclude: [...configDefaults.exclude, TIMING] } },
      { test: { ...timeouts, name: "timing", include: [TIMING], fileParallelism: false } },
    ],
  },
})
