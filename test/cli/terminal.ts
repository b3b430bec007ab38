/** Commands on a real terminal of a given width. */
import { requireTool } from "../support/tools.ts"

/** The line that runs this line on a terminal. */
export function onTerminal(line: string, columns = 120): string {
  requireTool("script", "bsdutils")
  return `script --quiet --return --log-out /dev/null --command ${quoted(`stty cols ${columns} -echo; ${line}`)}`
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
