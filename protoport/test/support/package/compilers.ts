/** The supported TypeScript versions, oldest first. The peers' types compile without errors since 5.7. */
export const compilers: readonly string[] = ["5.4", "5.6", "5.7", "5.9", "6.0", "7.0"];
