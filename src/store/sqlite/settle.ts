/** Settling: writes the outcomes of attempts, fenced by the token of their claim. */
import type { GateUpdate } from "../../core/gate.ts"
import { writeProtection } from "../../core/protection.ts"
import type { FencedGiveBack, FencedSettlement } from "../fence.ts"
import { isGivenUp } from "../rollups.ts"
import type { SettleResult } from "../store.ts"
import { applyDelivered, applyOutcome } from "./amend.ts"
import { addAttempt, insertAttempt } from "./attempts.ts"
import type { Context } from "./context.ts"

export function settle(context: Context, settlements: readonly FencedSettlement[]): SettleResult[] {
  return settlements.map((settlement) => settleOne(context, settlement))
}

function settleOne(context: Context, settlement: FencedSettlement): SettleResult {
  const { seq, token, change, attempt } = settlement
  if (!dropClaim(context, seq, token)) return "stale"
  context.openLanes.free(settlement.endpointId, token)
  const applied =
    change.status === "delivered" ? applyDelivered(context, settlement) : applyOutcome(context, settlement)
  if (applied) {
    if (attempt !== null) addAttempt(context, settlement, attempt)
    context.rollups.add(settlement, isGivenUp(change))
  } else if (attempt !== null && insertAttempt(context, seq, attempt)) {
    countLate(context, seq, change.lastAttemptedAt)
    context.rollups.add(settlement, false)
  }
  if (change.disableEndpoint) disable(context, settlement)
  if (settlement.gate !== null) updateGate(context, settlement.endpointId, token, settlement.gate)
  return applied ? "applied" : "superseded"
}

/** An outcome for a delivery that is finished counts as an attempt. A delivery that an operator revived starts at 0 without it. */
function countLate({ connection }: Context, seq: number, lastAttemptedAt: number | null): void {
  connection
    .sql(
      "UPDATE webhook_deliveries SET attempt_count = attempt_count + 1, last_attempted_at = ? WHERE seq = ? AND status IN ('delivered', 'dead')",
    )
    .run(lastAttemptedAt, seq)
}

export function giveBack(context: Context, claims: readonly FencedGiveBack[]): void {
  for (const { seq, token, endpointId, attempt } of claims) {
    // The delivery is due again, before new ones.
    context.openLanes.close(endpointId)
    context.openLanes.free(endpointId, token)
    if (dropClaim(context, seq, token) && attempt !== null) insertAttempt(context, seq, attempt)
  }
}

function dropClaim({ connection }: Context, seq: number, token: number): boolean {
  return connection.sql("DELETE FROM in_flight WHERE seq = ? AND token = ?").run(seq, token).changes === 1
}

/** Failures from before an operator enabled the endpoint do not disable it again. */
function disable(context: Context, { endpointId, change, gate }: FencedSettlement): void {
  context.connection
    .sql(`
      UPDATE endpoints
         SET disabled_at = iif(disabled, disabled_at, ?1), disabled_reason = iif(disabled, disabled_reason, ?2),
             disabled = 1, version = version + 1
       WHERE id = ?3 AND (?2 IS NOT 'failing' OR gate_epoch = ?4)`)
    .run(change.lastAttemptedAt, gate?.disables ?? null, endpointId, gate?.epoch ?? null)
  context.forget()
}

function updateGate(
  { connection, openLanes }: Context,
  endpointId: string,
  token: number,
  { holdUntil, protection, epoch, revision, closes }: GateUpdate,
): void {
  if (closes) openLanes.close(endpointId)
  connection
    .sql(`
      UPDATE endpoints SET hold_until = ?1, breaker_until = ?6, protection = ?7, gate_token = ?2, gate_revision = ?3
       WHERE id = ?4 AND gate_epoch = ?5 AND (gate_token, gate_revision) < (?2, ?3)`)
    .run(holdUntil, token, revision, endpointId, epoch, protection.until, writeProtection(protection))
}
