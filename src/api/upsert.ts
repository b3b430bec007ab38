/** PUT of a resource that may not exist: updates or creates it, also under concurrent requests. */
import { hasCode } from "../core/errors.ts"

export interface Upserted<T> {
  readonly value: T
  readonly status: 200 | 201
}

export async function updateOrCreate<T>(
  update: () => Promise<T>,
  create: () => Promise<T>,
): Promise<Upserted<T>> {
  const updated = async (): Promise<Upserted<T>> => ({ value: await update(), status: 200 })
  try {
    return await updated()
  } catch (error) {
    if (!hasCode(error, "not_found")) throw error
  }
  try {
    return { value: await create(), status: 201 }
  } catch (conflict) {
    if (!hasCode(conflict, "conflict")) throw conflict
    // Another request created it, or another resource has its uid: then it is still not found.
    return updated().catch((error) => {
      throw hasCode(error, "not_found") ? conflict : error
    })
  }
}
