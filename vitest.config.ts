import { configDefaults, defineConfig, type TestProjectInlineConfiguration } from "vitest/config"
import { bundledStoreThread } from "./test/support/bundle.ts"

/** Tests that compare times run by themselves, one after the other, so that the others do not disturb them. */
const TIMING = "**/*.timing.test.ts"
/** Tests of the dashboard in a real browser. Those of its pages run on every store. */
const BROWSER = "test/browser/**/*.test.ts"
const PAGES = "test/browser/pages/**/*.test.ts"
/** Tests of the engine's promises run on every store and schedule. */
const ENGINE = "test/{acceptance,kill,model}/**/*.test.ts"
const OUTAGES = [
  "test/engine/{breaker,budget,failing,outages,own-outage}.test.ts",
  "test/library/enabling.test.ts",
  "test/faults/{23-all-down,27-relay}.test.ts",
]
/** Tests of the library and the server run on every store. */
const LIBRARY = "test/{api/sdk,engine,library}/**/*.test.ts"
const SERVER = "test/api/{bounded,matrix,idempotency,inbound,changes,sessions,portal-sessions}.test.ts"
/** Agents, their lanes and their frames: on every store and schedule. */
const RELAY = [
  "test/api/relay.test.ts",
  "test/agent/server.test.ts",
  "test/library/{agents,agent-events,relay-lanes,waiting-for-agents}.test.ts",
]
/** Test files share the modules of their worker: loading them for each file takes a second and more on a small machine. */
const common = { testTimeout: 30_000, hookTimeout: 30_000, isolate: false }
const plugins = [bundledStoreThread()]
const exclude = [...configDefaults.exclude, TIMING, BROWSER]

function on(name: "postgres" | "redis", ...include: string[]): TestProjectInlineConfiguration {
  return { plugins, test: { ...common, name, include, exclude, env: { POSTHORN_TEST_ON: name } } }
}

function inBrowser(name: string, include: string, on: "sqlite" | "postgres"): TestProjectInlineConfiguration {
  const globalSetup = "test/browser/support/global-setup.ts"
  return {
    plugins,
    test: { ...common, name, include: [include], globalSetup, env: { POSTHORN_TEST_ON: on } },
  }
}

export default defineConfig({
  test: {
    globalSetup: "test/support/servers/global-setup.ts",
    // Many tests wait for servers and processes: fewer would leave a small machine idle.
    maxWorkers: 4,
    projects: [
      { plugins, test: { ...common, name: "behaviour", exclude } },
      on("postgres", ENGINE, LIBRARY, SERVER, ...OUTAGES, ...RELAY),
      on("redis", ENGINE, ...OUTAGES, ...RELAY),
      inBrowser("browser", BROWSER, "sqlite"),
      inBrowser("browser-postgres", PAGES, "postgres"),
      {
        plugins,
        // After all the others, and one file at a time.
        test: {
          ...common,
          name: "timing",
          include: [TIMING],
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
