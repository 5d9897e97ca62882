/**
 * The versions of TypeScript that read our types, oldest first. Before 5.7 there was no `Uint8Array<ArrayBuffer>`, which
 * the peers use, so only our own types are clean there.
 */
export const compilers: readonly string[] = ["5.4", "5.6", "5.7", "5.9", "6.0", "7.0"];
