/** Applications by name. */
import { pathTo } from "../api.ts"
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

/** In a list: `all` is read once for all of its rows. */
export function ApplicationName({ all, id }: { readonly all: Applications; readonly id: string }) {
  return <Named id={id} name={all.data?.data.find((one) => one.id === id)?.name} />
}

/** On the page of one thing. */
export function ApplicationLink({ id }: { readonly id: string }) {
  const { data } = useResource<Application>(pathTo("/app", id))
  return <Named id={id} name={data?.name} />
}

function Named({ id, name }: { readonly id: string; readonly name: string | undefined }) {
  if (name === undefined) return <Id id={id} href={toApplication(id)} />
  return (
    <a href={toApplication(id)} title={id}>
      {name}
    </a>
  )
}
