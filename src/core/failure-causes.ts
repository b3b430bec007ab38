/** Why there is no response: the closed list that a tenant sees. */
export const FAILURE_CAUSES = [
  "dns_error",
  "connection_refused",
  "connection_reset",
  "tls_error",
  "timeout",
  "target_forbidden",
  "response_too_large",
  "invalid_response",
  "network_error",
  "auth_error",
] as const
export type FailureCause = (typeof FAILURE_CAUSES)[number]
