/** The kinds of tasks. Svix's clients read a task only if they know its kind, so Posthorn's own kinds stay out of Svix's list. */

/** All kinds that Svix's clients know; Posthorn makes some of them. */
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
