/** Tests of random moments and of other languages are short in `npm test`, and long in `npm run soak`. */
export const IS_LONG = process.env.POSTHORN_TEST_LONG === "1"

export function rounds(short: number, long: number): number {
  return IS_LONG ? long : short
}
