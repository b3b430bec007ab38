/**
 * A model of the disk under a database: what is certain to be there, what is only in the system's cache, and the images that a power cut
 * can leave of it. Without a sync each sector of a write reaches the disk or not, in any order.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { ENDINGS, type FileEnding, type Step } from "./trace.ts"

/** The fate of writes that were not synced. */
export type Unsynced = "lost" | "kept" | "torn"

const SECTOR_BYTES = 512

type Change = { readonly offset: number; readonly data: Buffer } | { readonly size: number }

/** The bytes of a file, changed in place. */
class Content {
  #bytes: Buffer
  #size: number

  constructor(bytes = Buffer.alloc(0)) {
    this.#bytes = bytes
    this.#size = bytes.length
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#size)
  }

  apply(change: Change): void {
    if ("size" in change) return this.#resize(change.size)
    this.#resize(Math.max(this.#size, change.offset + change.data.length))
    change.data.copy(this.#bytes, change.offset)
  }

  #resize(size: number): void {
    if (size > this.#bytes.length) this.#bytes = Buffer.concat([this.bytes], 2 * size)
    this.#bytes.fill(0, Math.min(size, this.#size), Math.max(size, this.#size))
    this.#size = size
  }
}

interface DiskFile {
  readonly durable: Content
  /** Not synced, in their order. */
  pending: Change[]
}

export class Disk {
  /** By name: those whose entry in the folder is certain, and those that the program sees. */
  #durable = new Map<FileEnding, DiskFile>()
  #current = new Map<FileEnding, DiskFile>()
  readonly #random: () => number

  constructor(random: () => number) {
    this.#random = random
  }

  apply(step: Step): void {
    if (step.op === "said") return
    if (step.op === "folderSynced") {
      this.#durable = new Map(this.#current)
      return
    }
    const file = this.#current.get(step.file) ?? { durable: new Content(), pending: [] }
    switch (step.op) {
      case "created":
        this.#current.set(step.file, file)
        break
      case "unlinked":
        this.#current.delete(step.file)
        break
      case "written":
        file.pending.push({ offset: step.offset, data: step.data })
        break
      case "truncated":
        file.pending.push({ size: step.size })
        break
      case "synced":
        for (const change of file.pending) file.durable.apply(change)
        file.pending = []
        this.#durable.set(step.file, file)
        break
      case "syncFailed":
        // Clean pages are not written any more, whether they can be read or not.
        file.pending = []
    }
  }

  /** Writes what a power cut now leaves into the folder; the database's path. */
  image(folder: string, unsynced: Unsynced): string {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder)
    const path = join(folder, "image.db")
    for (const ending of ENDINGS) {
      const [sure, seen] = [this.#durable.get(ending), this.#current.get(ending)]
      const isSeen = unsynced === "kept" || (unsynced === "torn" && this.#random() < 0.5)
      const file = isSeen ? seen : sure
      if (file === undefined) continue
      const content = new Content(Buffer.from(file.durable.bytes))
      for (const change of this.#survivors(file, unsynced)) content.apply(change)
      writeFileSync(path + ending, content.bytes)
    }
    return path
  }

  #survivors({ pending }: DiskFile, unsynced: Unsynced): readonly Change[] {
    if (unsynced === "lost") return []
    if (unsynced === "kept") return pending
    return pending
      .flatMap((change) => ("size" in change ? [change] : sectors(change)))
      .filter(() => this.#random() < 0.5)
  }
}

function sectors({ offset, data }: { readonly offset: number; readonly data: Buffer }): Change[] {
  const parts: Change[] = []
  for (let at = 0; at < data.length; ) {
    const to = Math.min(data.length, at + SECTOR_BYTES - ((offset + at) % SECTOR_BYTES))
    parts.push({ offset: offset + at, data: data.subarray(at, to) })
    at = to
  }
  return parts
}
