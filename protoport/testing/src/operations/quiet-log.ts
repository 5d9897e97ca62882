export const quietLog = { info(): void {}, warn(): void {} };
