/** Returns an error's SQLSTATE. Returns `undefined` for an error that did not come from the server. */
export function sqlStateOf(fault: unknown): string | undefined {
  if (!(fault instanceof Error) || !("code" in fault) || !("severity" in fault)) return undefined;
  return typeof fault.code === "string" ? fault.code : undefined;
}
