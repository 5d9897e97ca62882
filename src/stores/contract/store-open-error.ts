import type { PlantErrorCode } from "../../service/index.ts";

/** A store cannot be opened or used. The message tells the operator why, with the file or server, but no password. */
export class StoreOpenError extends Error {
  override readonly name = "StoreOpenError";
  /** The error code, as in Node.js. See docs/reference/errors.md. */
  readonly code: PlantErrorCode = "ERR_STORE_OPEN";
}
