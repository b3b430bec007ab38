/** Endpoints whose URLs were put into the file past all checks, as an operator's hand or older rules could have left them. */
import type { Harness } from "../support/harness.ts"
import type { Site } from "./site.ts"

export async function plant(harness: Harness, endpointId: string, url: string): Promise<void> {
  await harness.sql("UPDATE endpoints SET url = ?, version = version + 1 WHERE id = ?", url, endpointId)
}

/** One endpoint for each URL and one message for all: what came of each attempt, by its URL. */
export async function outcomes(
  harness: Harness,
  site: Site,
  urls: readonly string[],
): Promise<{ [url: string]: string | null | undefined }> {
  const ids: string[] = []
  for (const url of urls) {
    const id = await harness.endpoint({ url: site.url() })
    await plant(harness, id, url)
    ids.push(id)
  }
  await harness.send()
  await harness.quiet()
  const errorOf = (id: string) =>
    harness.events.find((event) => event.type === "delivery.attempt" && event.webhook_id === id)
  return Object.fromEntries(
    urls.map((url, index) => {
      const event = errorOf(ids[index]!)
      return [url, event?.type === "delivery.attempt" ? event.error : undefined]
    }),
  )
}

/** The same word for every URL. */
export function all<T>(urls: readonly string[], word: T): { [url: string]: T } {
  return Object.fromEntries(urls.map((url) => [url, word]))
}
