/** Tells the page's readers when to read again: after events of the live stream, at most once in two seconds, and every 30 seconds. */
const LEAST_MS = 2000
const MOST_MS = 30_000
/** Rows keep their places while a pointer moves over them: the user aims at one. */
const AIMING_MS = 1000

const readers = new Set<() => void>()
let lastAt = Date.now()
let waiting: ReturnType<typeof setTimeout> | null = null
let aimedAt = 0

export function onRefresh(read: () => void): () => void {
  readers.add(read)
  return () => readers.delete(read)
}

/** Something happened. */
export function refresh(): void {
  if (waiting !== null || document.hidden) return
  waiting = setTimeout(runUnlessAimed, Math.max(0, lastAt + LEAST_MS - Date.now()))
}

function runUnlessAimed(): void {
  const restMs = aimedAt + AIMING_MS - Date.now()
  if (restMs > 0) waiting = setTimeout(runUnlessAimed, restMs)
  else run()
}

/** The reader asks for it. */
export function refreshNow(): void {
  if (waiting !== null) clearTimeout(waiting)
  run()
}

function run(): void {
  waiting = null
  lastAt = Date.now()
  for (const read of readers) read()
}

setInterval(() => {
  if (!document.hidden && Date.now() - lastAt >= MOST_MS) refresh()
}, 5000)
document.addEventListener("visibilitychange", refresh)
document.addEventListener("pointermove", ({ target }) => {
  if (target instanceof Element && target.closest("main tbody") !== null) aimedAt = Date.now()
})
