/** A server that can get calls. */
export interface ServerLoad {
  /** Number of its calls. */
  readonly calls: number;
}

/**
 * Returns the less loaded of two random servers ("The Power of Two Choices"): nearly as even as the least loaded of all,
 * without checking all, and without all clients picking the same one.
 */
export function pickServer<Server extends ServerLoad>(servers: readonly Server[]): Server | undefined {
  const count = servers.length;
  if (count < 2) return servers[0];
  const first = Math.trunc(Math.random() * count);
  // A different one, uniformly distributed.
  const second = (first + 1 + Math.trunc(Math.random() * (count - 1))) % count;
  const [one, other] = [servers[first], servers[second]];
  return one !== undefined && other !== undefined && one.calls > other.calls ? other : one;
}
