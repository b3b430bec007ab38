/** Sentences about connections that could not be made. */

const UNTRUSTED = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
])

/** `place` is an origin, such as `http://localhost:3000`; `trust` says how to trust its authority. */
export function networkProblem(error: unknown, place: string, trust: string): string {
  const { code = "", message = String(error) } = error as {
    readonly code?: string
    readonly message?: string
  }
  if (UNTRUSTED.has(code))
    return `the certificate of ${place} is refused: no authority that this machine trusts has signed it (${code}); ${trust}`
  switch (code) {
    case "ECONNREFUSED":
      return `${place} refused the connection`
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `the name in ${place} cannot be resolved (${code})`
    case "ETIMEDOUT":
    case "UND_ERR_CONNECT_TIMEOUT":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
      return `${place} cannot be reached from here (${code})`
    case "ECONNRESET":
    case "EPIPE":
    case "UND_ERR_SOCKET":
      return `${place} closed the connection without an answer`
    case "CERT_HAS_EXPIRED":
      return `the certificate of ${place} is refused: it has expired`
    case "CERT_NOT_YET_VALID":
      return `the certificate of ${place} is refused: it is not valid yet; check the clocks of both machines`
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return `the certificate of ${place} is refused: it is for other names`
    case "EPROTO":
    case "ERR_SSL_WRONG_VERSION_NUMBER":
    case "ERR_SSL_PACKET_LENGTH_TOO_LONG":
      return `${place} does not speak TLS: write http:// if that is meant`
    default:
      return `${place} cannot be used: ${code === "" ? message : code}`
  }
}
