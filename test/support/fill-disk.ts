/** Takes all the room that a disk has. */
import { closeSync, openSync, writeSync } from "node:fs"

/** To the last byte, so that nothing finds room by chance. */
export function fillDisk(file: string): void {
  const descriptor = openSync(file, "w")
  try {
    for (let size = 65_536; size >= 1; size = Math.floor(size / 2)) {
      try {
        for (;;) writeSync(descriptor, Buffer.alloc(size))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error
      }
    }
  } finally {
    closeSync(descriptor)
  }
}
