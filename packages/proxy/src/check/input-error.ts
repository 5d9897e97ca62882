/** Thrown for an invalid file or argument. The message is shown to the user of the command. */
export class InputError extends Error {}
