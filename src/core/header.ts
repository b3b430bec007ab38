/** What the name and the value of a header may be, sent or received. */

export const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** A lone CR or LF among them: two readers would see different lines. */
export const NOT_IN_A_HEADER = /[^\t\x20-\x7e\x80-\xff]/
