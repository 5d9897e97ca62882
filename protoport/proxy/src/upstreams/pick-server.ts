/** A server that can get calls. */
export interface ServerLoad {
  /** How many calls are in flight to the server. */
  readonly calls: number;
}

/**
 * Returns the less loaded of two random servers ("The Power of Two Choices"). The load is distributed nearly as evenly
 * as with the least loaded server. Only two servers are checked, and clients do not all pick the same server.
 */
export function pickServer<Server extends ServerLoad>(servers: readonly Server[]): Server | undefined {
  const count = servers.length;
  if (count < 2) return servers[0];
  const first = Math.trunc(Math.random() * count);
  // The second server is any server except the first, with uniform probability.
  const second = (first + 1 + Math.trunc(Math.random() * (count - 1))) % count;
  const [one, other] = [servers[first], servers[second]];
  return one !== undefined && other !== undefined && one.calls > other.calls ? other : one;
}
