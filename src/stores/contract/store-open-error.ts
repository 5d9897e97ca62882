import type { PlantErrorCode } from "../../service/index.ts";

/**
 * The error for a store that cannot be opened or used. The message is a sentence for the operator. The message names
 * the file or server, and never contains a password.
 */
export class StoreOpenError extends Error {
  override readonly name = "StoreOpenError";
  /** The error code, as in Node.js. See docs/reference/errors.md. */
  readonly code: PlantErrorCode = "ERR_STORE_OPEN";
}
