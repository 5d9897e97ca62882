/** The options for open-client.ts, which are passed as an argument in JSON. */
export interface OpenLoadOptions {
  readonly protocol: "rest" | "grpc";
  readonly port: number;
  /** Number of calls per second. The intervals are random, as between calls from independent callers. */
  readonly callsPerS: number;
  readonly durationS: number;
  /** The id of the first plant to delete. Each plant is deleted once. */
  readonly firstPlant: number;
  /**
   * Number of connections that are opened before the first call. The default is 16 for gRPC. For REST, connections are
   * by default opened on demand.
   */
  readonly connections?: number | undefined;
}

/** A call's outcome. A refusal contains the time after which to retry. */
export type Outcome = "deleted" | "refused" | "other";

/**
 * The response to a call. The call starts when it is due. With a fixed number of connections, the call starts when a
 * connection is free, because a caller with its own connection sends its next call after a response.
 */
export interface OpenResponse {
  readonly latencyMs: number;
  /** Milliseconds from the load's start to the call's start. */
  readonly startMs: number;
  readonly kind: Outcome;
}

/** The result of open-client.ts. */
export interface OpenResult {
  readonly responses: readonly OpenResponse[];
  /** Seconds from the first call to the last response. */
  readonly tookS: number;
}

/** Calls over connections that stay open. */
export interface OpenCalls {
  /** Deletes a plant. @param onOutcome - gets the call's outcome */
  send(plant: number, onOutcome: (kind: Outcome) => void): void;
  close(): void;
}
