/** What open-client.ts is told, as one argument of JSON. */
export interface OpenOrder {
  readonly protocol: "rest" | "grpc";
  readonly port: number;
  /** Calls a second; the gaps between them are random, as between independent callers. */
  readonly callsPerS: number;
  readonly durationS: number;
  /** The id of the first plant; each is deleted once. */
  readonly firstPlant: number;
}

/** What came of a call; a refusal says when to try again. */
export type Outcome = "deleted" | "refused" | "other";

/** One answer: how long it took from when its call was due, and what it was. */
export interface OpenAnswer {
  readonly latencyMs: number;
  /** When its call was due, since the first one. */
  readonly dueMs: number;
  readonly kind: Outcome;
}

/** What it saw. */
export interface OpenSeen {
  readonly answers: readonly OpenAnswer[];
  /** From the first call to the last answer. */
  readonly tookS: number;
}

/** Calls over connections that stay open. */
export interface OpenCalls {
  /** Deletes a plant. @param onOutcome - called with what came of it */
  send(plant: number, onOutcome: (kind: Outcome) => void): void;
  close(): void;
}
