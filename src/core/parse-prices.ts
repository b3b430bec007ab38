/** Prices of attempts, as an operator wrote them. */
import type { Prices } from "./cost.ts"
import { invalid } from "./errors.ts"
import { refuseUnknown, requireNumber, requireObject } from "./input.ts"

export interface PricesInput {
  /** For every thousand attempts, 0 by default. */
  perThousandAttempts?: number
  /** For every 10⁹ bytes of payloads that were sent, 0 by default. */
  perGigabyteOut?: number
  /** For every hour in which an attempt occupied one of the slots (`maxInFlight`), 0 by default. */
  perSlotHour?: number
  /** ISO 4217, such as EUR. */
  currency: string
}

const PRICES = ["perThousandAttempts", "perGigabyteOut", "perSlotHour"] as const
const HIGHEST = 1_000_000

export function parsePrices(given: unknown): Prices {
  requireObject(given, "cost")
  const input = given as PricesInput
  refuseUnknown(input, [...PRICES, "currency"], "cost")
  const [perThousandAttempts, perGigabyteOut, perSlotHour] = PRICES.map((name) =>
    input[name] === undefined ? 0 : requireNumber(input[name], `cost.${name}`, 0, HIGHEST),
  ) as [number, number, number]
  const { currency } = input
  if (typeof currency !== "string" || !/^[A-Z]{3}$/.test(currency))
    throw invalid("cost.currency", "must be three capital letters of ISO 4217, such as EUR")
  if (perThousandAttempts + perGigabyteOut + perSlotHour === 0)
    throw invalid("cost", `must have a price above 0: ${PRICES.join(", ")}; leave it out to see units only`)
  return { perThousandAttempts, perGigabyteOut, perSlotHour, currency }
}
