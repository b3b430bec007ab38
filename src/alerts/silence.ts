/** Silences: an operator suppresses the notifications of a rule, or of one of its subjects, until a time. */
import type { Alert } from "./alert-state.ts"
import type { RuleId } from "./rules.ts"

export interface SilenceBody {
  readonly rule: RuleId
  /** Null: all subjects of the rule. */
  readonly subject: string | null
  readonly until: number
  readonly reason: string
  /** The id of the key; null: the library. */
  readonly by: string | null
}

export function silenceOf<S extends SilenceBody>(
  silences: readonly S[],
  { rule, subject }: Pick<Alert, "rule" | "subject">,
  now: number,
): S | undefined {
  return silences.find(
    (one) => one.rule === rule && (one.subject === null || one.subject === subject) && one.until > now,
  )
}
