/** A log that writes nothing. */
export const quietLog = { info(): void {}, warn(): void {} };
