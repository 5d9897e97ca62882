/** The open-client.ts options, an argument in JSON. */
export interface OpenOrder {
  readonly protocol: "rest" | "grpc";
  readonly port: number;
  /** Calls per second, at random intervals, like those from independent callers. */
  readonly callsPerS: number;
  readonly durationS: number;
  /** The first plant's id. Each is deleted once. */
  readonly firstPlant: number;
  /** How many connections are opened before the first call. By default 16 for gRPC, and as many as REST needs. */
  readonly connections?: number | undefined;
}

/** A call's outcome. A refusal contains the time after which to retry. */
export type Outcome = "deleted" | "refused" | "other";

/**
 * The response to a call. The call starts when it is due, or, with a fixed number of connections, when one is free. A
 * caller with its own connection sends its next call after a response.
 */
export interface OpenResponse {
  readonly latencyMs: number;
  /** When the call started, since the load's start. */
  readonly startMs: number;
  readonly kind: Outcome;
}

/** The open-client.ts result. */
export interface OpenResult {
  readonly responses: readonly OpenResponse[];
  /** How long it took from the first call to the last response. */
  readonly tookS: number;
}

/** Calls over connections that stay open. */
export interface OpenCalls {
  /** Deletes a plant. @param onOutcome - called with the outcome */
  send(plant: number, onOutcome: (kind: Outcome) => void): void;
  close(): void;
}
