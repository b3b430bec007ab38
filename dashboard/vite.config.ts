/** Builds the pages into dist/dashboard, which the server sends. `npm run dashboard` serves them with hot reload, before a running server. */
import { fileURLToPath } from "node:url"
import { defineConfig } from "vite"

const path = (file: string) => fileURLToPath(new URL(file, import.meta.url))
const server = process.env.POSTHORN_SERVER ?? "http://localhost:8071"

export default defineConfig({
  root: path("."),
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: path("../dist/dashboard"),
    emptyOutDir: true,
    target: "es2023",
    // The Content-Security-Policy allows no inline scripts and no data: fonts.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rolldownOptions: { input: { dashboard: path("index.html"), portal: path("portal.html") } },
  },
  server: {
    // The server compares a request's origin with its own host.
    proxy: { "/api": { target: server, changeOrigin: true, headers: { origin: server } } },
  },
  appType: "mpa",
})
