/** The types of tasks. Svix's clients fail on an unknown type, so tasks of Posthorn's own types are left out of Svix's list. */

/** The types that Svix's clients know. Posthorn uses some of them. */
export const SVIX_TASK_TYPES = [
  "endpoint.replay",
  "endpoint.recover",
  "endpoint.bulk-replay",
  "application.stats",
  "application.purge_content",
  "event-type.aggregate",
  "message.broadcast",
  "sdk.generate",
] as const

export const OWN_TASK_TYPES = [
  "endpoint.delete",
  "endpoint.cancel",
  "endpoint.enable",
  "application.delete",
  "dead.retry",
  "dead.discard",
  "delivery.send-now",
] as const

export const TASK_TYPES = [...SVIX_TASK_TYPES, ...OWN_TASK_TYPES] as const
export type SvixTaskType = (typeof SVIX_TASK_TYPES)[number]
export type TaskType = (typeof TASK_TYPES)[number]

export function isSvixTask(type: string): type is SvixTaskType {
  return (SVIX_TASK_TYPES as readonly string[]).includes(type)
}
