/** A log that writes nothing, for what is not about the log. */
export const quietLog = { info(): void {}, warn(): void {} };
