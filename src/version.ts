/** The version, as receivers see it in the user agent, and the Node that it needs. Tests hold both to package.json. */
export const VERSION = "0.1.0"

const OLDEST_NODE = [24, 15] as const

/** What is wrong with a Node of this version, in a sentence; null if nothing is. */
export function nodeProblem(version: string): string | null {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  const [oldestMajor, oldestMinor] = OLDEST_NODE
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return null
  return `Posthorn needs Node ${OLDEST_NODE.join(".")} or newer, and this is Node ${version}: install a current one`
}
