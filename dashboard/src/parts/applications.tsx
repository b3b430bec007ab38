/** Applications by name. */
import { toApplication } from "../links.ts"
import { type List, type Resource, useResource } from "../resource.ts"
import type { Application } from "../types.ts"
import { Id } from "../ui/basics.tsx"

/** Of more applications, the others are shown by id. */
const NAMED = 250

export type Applications = Resource<List<Application>>

export function useApplications(): Applications {
  return useResource<List<Application>>("/app", { limit: NAMED })
}

export function ApplicationName({ all, id }: { readonly all: Applications; readonly id: string }) {
  const name = all.data?.data.find((one) => one.id === id)?.name
  return name === undefined ? <Id id={id} href={toApplication(id)} /> : <a href={toApplication(id)}>{name}</a>
}
