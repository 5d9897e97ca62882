/**
 * Returns the status for a 30,000-byte target. The HTTP engine responds with 414, and node with 431, because it counts
 * the target as part of the header.
 */
export async function statusOfLongTarget(baseUrl: string): Promise<number> {
  const { status, body } = await fetch(`${baseUrl}/${"7".repeat(30_000)}`, { headers: { connection: "close" } });
  await body?.cancel();
  return status;
}
