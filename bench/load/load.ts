/** What a load generator saw. */
export interface LoadResult {
  readonly requests: number;
  /** Answers that no server should give under this load, and connections that broke. */
  readonly failures: number;
  readonly durationS: number;
  readonly latencyUs: Percentiles;
}

/** The middle of a sample and its slow end, in the sample's unit. */
export interface Percentiles {
  readonly p50: number;
  readonly p99: number;
}

/** Puts a load on a port of loopback for `durationS` seconds. */
export type Load = (port: number, durationS: number) => Promise<LoadResult>;

/** The shape of a load: what is sent, and how many at once. */
export interface LoadShape {
  readonly httpMethod: string;
  readonly path: string;
  readonly header: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
  readonly connections: number;
  /** Requests that are open at once on one connection; more than 1 needs HTTP/2. */
  readonly streams: number;
}

/** Reads the percentiles of a sample. */
export function percentilesOf(sample: Float64Array): Percentiles {
  const sorted = sample.toSorted();
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99) };
}
