/**
 * The supported TypeScript versions, oldest first. `Uint8Array<ArrayBuffer>`, which the peers use, exists since 5.7, so
 * before it only this project's types compile without errors.
 */
export const compilers: readonly string[] = ["5.4", "5.6", "5.7", "5.9", "6.0", "7.0"];
