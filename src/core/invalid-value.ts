/** A value that cannot be used: the message completes a sentence that begins with the name of the flag or setting. */
export class InvalidValue extends Error {}
