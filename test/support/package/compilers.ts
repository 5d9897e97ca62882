/**
 * The supported versions of TypeScript, oldest first. Before 5.7 there was no `Uint8Array<ArrayBuffer>`, which the peers
 * use, so only the types of this project compile without errors there.
 */
export const compilers: readonly string[] = ["5.4", "5.6", "5.7", "5.9", "6.0", "7.0"];
