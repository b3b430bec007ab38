/** The payload of a notification's message: the body that webhook channels get, and from which the other kinds are written. */
import { type Bytes, toBuffer } from "../../core/bytes.ts"
import type { Notification, NotificationKind } from "../notification.ts"
import { iso } from "./text.ts"

export function eventTypeOf(kind: NotificationKind): string {
  return kind === "dead_letters" ? "dead_letters" : `alert.${kind}`
}

/** Standard Webhooks' form, with times as ISO texts. */
export interface NotificationPayload {
  readonly type: string
  readonly timestamp: string
  readonly data: Omit<Notification, "startedAt" | "endedAt" | "subjects"> & {
    readonly startedAt: string
    readonly endedAt: string | null
    readonly subjects: readonly { readonly name: string; readonly since: string; readonly detail: string }[]
  }
}

export function writePayload(notification: Notification): NotificationPayload {
  const { kind, startedAt, endedAt, subjects } = notification
  return {
    type: eventTypeOf(kind),
    timestamp: iso(endedAt ?? startedAt),
    data: {
      ...notification,
      startedAt: iso(startedAt),
      endedAt: endedAt === null ? null : iso(endedAt),
      subjects: subjects.map((subject) => ({ ...subject, since: iso(subject.since) })),
    },
  }
}

export function readPayload(body: Bytes): Notification {
  const { data } = JSON.parse(toBuffer(body).toString("utf8")) as NotificationPayload
  const { startedAt, endedAt, subjects } = data
  return {
    ...data,
    startedAt: Date.parse(startedAt),
    endedAt: endedAt === null ? null : Date.parse(endedAt),
    subjects: subjects.map((subject) => ({ ...subject, since: Date.parse(subject.since) })),
  }
}
