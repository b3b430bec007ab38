/** The version, as receivers see it in the user agent. A test holds it to package.json. */
export const VERSION = "0.1.0"
