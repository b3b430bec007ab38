/** The characters of header names and values, sent or received. */

export const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** Forbidden in a value. A lone CR or LF is forbidden too: two parsers would see different lines. */
export const NOT_IN_A_HEADER = /[^\t\x20-\x7e\x80-\xff]/
