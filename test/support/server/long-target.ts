/**
 * Returns the status for a target of 30,000 bytes, which shows whose HTTP serves a URL: 414 of the gateway's own, 431 of
 * node's, which counts the target as part of the header.
 */
export async function statusOfLongTarget(baseUrl: string): Promise<number> {
  const { status, body } = await fetch(`${baseUrl}/${"7".repeat(30_000)}`, { headers: { connection: "close" } });
  await body?.cancel();
  return status;
}
