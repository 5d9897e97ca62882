/**
 * Returns the status for a target of 30,000 bytes, which depends on a URL's HTTP server: 414 for the HTTP engine, 431
 * for node, which counts the target as part of the header.
 */
export async function statusOfLongTarget(baseUrl: string): Promise<number> {
  const { status, body } = await fetch(`${baseUrl}/${"7".repeat(30_000)}`, { headers: { connection: "close" } });
  await body?.cancel();
  return status;
}
