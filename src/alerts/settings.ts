/** Settings of all notifications. */
import { refuseUnknown, requireObject, wholeNumber } from "../core/input.ts"

export interface AlertSettings {
  /** A firing alert that nobody acknowledged is notified again after this time. */
  readonly repeatHours: number
  /** The most notifications to a channel in an hour. */
  readonly notificationsPerHour: number
}

export const ALERT_DEFAULTS: AlertSettings = { repeatHours: 4, notificationsPerHour: 20 }

/** Fields that are left out are as in `before`. */
export function parseSettings(input: unknown, before: AlertSettings, at: string): AlertSettings {
  requireObject(input, at)
  const given = input as Partial<AlertSettings>
  refuseUnknown(given, Object.keys(ALERT_DEFAULTS), at)
  const { repeatHours = before.repeatHours, notificationsPerHour = before.notificationsPerHour } = given
  return {
    repeatHours: wholeNumber(repeatHours, fieldOf(at, "repeatHours"), 1, 720),
    notificationsPerHour: wholeNumber(notificationsPerHour, fieldOf(at, "notificationsPerHour"), 1, 1000),
  }
}

const fieldOf = (at: string, name: string) => (at === "" ? name : `${at}.${name}`)
