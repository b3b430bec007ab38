/** Content from a flag, a file or standard input. */
import { readFile } from "node:fs/promises"
import { printable } from "../core/text.ts"
import { type Flag, text } from "./flag.ts"
import { UsageError } from "./usage-error.ts"

export const SOURCE_FLAGS = {
  data: text("JSON", "as it is typed here"),
  file: text("FILE", "as it is in this file; - is standard input"),
} as const satisfies { readonly [name: string]: Flag }

export interface Source {
  readonly text: string
  /** For error messages. */
  readonly name: string
}

/** One of the two flags, or `-` as an argument. */
export async function readSource(
  { data, file }: { readonly data?: string; readonly file?: string },
  dash?: string,
): Promise<Source> {
  if (dash !== undefined && dash !== "-")
    throw new UsageError(`there is no place for "${printable(dash)}" here; - is standard input`)
  const given = [data, file, dash].filter((one) => one !== undefined)
  if (given.length !== 1)
    throw new UsageError("say once what the content is: --data JSON, --file FILE, or - for standard input")
  return data === undefined ? readFrom(file ?? "-") : { text: data, name: "--data" }
}

/** Refuses bytes that are not UTF-8: they could not be sent unchanged. */
async function readFrom(path: string): Promise<Source> {
  const name = path === "-" ? "standard input" : path
  try {
    const bytes = path === "-" ? await readStandardInput() : await readFile(path)
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes), name }
  } catch (error) {
    throw new UsageError(`${printable(name)} cannot be read: ${printable((error as Error).message)}`)
  }
}

async function readStandardInput(): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk)
  return Buffer.concat(chunks)
}

export function parseJson({ text: given, name }: Source): unknown {
  try {
    return JSON.parse(given)
  } catch (error) {
    throw new UsageError(`${printable(name)} is not JSON: ${printable((error as Error).message)}`)
  }
}

/** The fields in a JSON file; none without a file. */
export async function fieldsFrom(path: string | undefined): Promise<{ readonly [field: string]: unknown }> {
  if (path === undefined) return {}
  const source = await readFrom(path)
  const content = parseJson(source)
  if (typeof content !== "object" || content === null || Array.isArray(content))
    throw new UsageError(`${printable(source.name)} must have a JSON object, such as {"name": "Acme"}`)
  return content as { readonly [field: string]: unknown }
}
