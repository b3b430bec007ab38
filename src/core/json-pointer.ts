/** JSON pointers (RFC 6901): `/data/0/id` is the field `id` of the first entry of `data`. */

export const JSON_POINTER = /^(\/([^~/]|~[01])*)+$/

/** Undefined where the value has no such place. */
export function readPointer(value: unknown, pointer: string): unknown {
  let at = value
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~")
    // Fields of the object itself: `/constructor` of `{}` is nothing.
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined
    if (Array.isArray(at) && !/^(0|[1-9]\d*)$/.test(name)) return undefined
    at = (at as { readonly [name: string]: unknown })[name]
  }
  return at
}
