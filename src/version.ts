/** Posthorn's version, which the user agent shows, and the oldest Node. Tests compare both with package.json. */
export const VERSION = "0.1.0"

const OLDEST_NODE = [24, 15] as const

/** Why Posthorn cannot run on this version of Node, as a sentence, or null. */
export function nodeProblem(version: string): string | null {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  const [oldestMajor, oldestMinor] = OLDEST_NODE
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return null
  return `Posthorn needs Node ${OLDEST_NODE.join(".")} or newer, and this is Node ${version}: install a current one`
}
