/**
 * What is each error called? The stable identifiers of what the gateway refuses, of its faults, and of what it throws
 * at the program that embeds it: logs and alerts match these, because messages may change.
 * docs/errors.md and docs/identifiers.md explain each.
 */
export { codedError, errorCodeOf, type Failure, type GatewayErrorCode, withCode } from "./error-code.ts";
export { messageOf } from "./message-of.ts";
