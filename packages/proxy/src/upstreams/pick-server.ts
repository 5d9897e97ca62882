/** A server that calls can be given to. */
export interface Loaded {
  /** Calls that it has. */
  readonly calls: number;
}

/**
 * Returns the less loaded of two that are taken at random: nearly as even as the least loaded of all, without a look at
 * all, and without every client going for the same one ("The Power of Two Choices").
 */
export function pickServer<Server extends Loaded>(servers: readonly Server[]): Server | undefined {
  const count = servers.length;
  if (count < 2) return servers[0];
  const first = Math.trunc(Math.random() * count);
  // Another one, each with the same chance.
  const second = (first + 1 + Math.trunc(Math.random() * (count - 1))) % count;
  const [one, other] = [servers[first], servers[second]];
  return one !== undefined && other !== undefined && one.calls > other.calls ? other : one;
}
