/** The body of an error response as a sentence. */

export interface ProblemBody {
  readonly code?: string
  readonly detail?: string | readonly FieldProblem[]
}

interface FieldProblem {
  readonly loc: readonly string[]
  readonly msg: string
}

/** Null: the body says nothing. */
export function sentenceOf(body: ProblemBody | null): string | null {
  const detail = body?.detail ?? ""
  return (Array.isArray(detail) ? detail.map(textOf).join("; ") : (detail as string)) || null
}

/** Begins with the parameter of the query, or the path of the field in the body. */
function textOf({ loc: [where, ...path], msg }: FieldProblem): string {
  const field = where === "query" ? (path[0] ?? "") : path.join(".")
  return field === "" ? msg : `${field}: ${msg}`
}
