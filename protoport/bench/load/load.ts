/** A load generator's result. */
export interface LoadResult {
  readonly requests: number;
  /** Number of unexpected responses and broken connections. */
  readonly failures: number;
  readonly durationS: number;
  readonly latencyUs: Percentiles;
}

/** A sample's percentiles, in its unit. */
export interface Percentiles {
  readonly p50: number;
  readonly p99: number;
}

/** Puts a load on a loopback port for `durationS` seconds. */
export type Load = (port: number, durationS: number) => Promise<LoadResult>;

/** A load's request, and the number of concurrent requests. */
export interface LoadShape {
  readonly httpMethod: string;
  readonly path: string;
  readonly header: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
  readonly connections: number;
  /** Number of concurrent requests on a connection. More than 1 requires HTTP/2. */
  readonly streams: number;
  /**
   * Paths and header fields that are sent in turn, in this order, instead of `path` and `header`. Supported only over
   * HTTP/1.1.
   */
  readonly variants?: readonly Variant[];
  /** Whether the load uses TLS, without verifying the certificate. */
  readonly isTls?: boolean;
}

/** A request in a load with several different requests. */
export interface Variant {
  readonly path: string;
  readonly header: Readonly<Record<string, string>>;
}

/** Returns a server's origin on a loopback port. */
export function originOf({ isTls = false }: LoadShape, port: number): string {
  return `${isTls ? "https" : "http"}://127.0.0.1:${String(port)}`;
}

/** Returns a request over HTTP/1.1 without a body. */
export function requestOf({ httpMethod }: LoadShape, { path, header }: Variant): string {
  const fields = Object.entries(header).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${httpMethod} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${fields.join("")}\r\n`;
}

/** Returns a sample's percentiles. */
export function percentilesOf(sample: Float64Array): Percentiles {
  const sorted = sample.toSorted();
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99) };
}
