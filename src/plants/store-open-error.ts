/**
 * A store cannot be opened or used. The message is a sentence for the operator: it names the file or server and never
 * contains a password.
 */
export class StoreOpenError extends Error {
  override readonly name = "StoreOpenError";
}
