/** Thrown for an invalid file or argument. The message is shown to the command's user. */
export class InputError extends Error {}
