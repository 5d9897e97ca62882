import { Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { type OptionNames, refuseUnknownOptions } from "@plantstore/gateway/options";
import {
  createPlantClient,
  idempotencyKeyName,
  plantClientOptionNames,
  type PlantClientOptions,
  quoteIdempotencyKey,
} from "./create-plant-client.ts";

/** The default of `timeoutMs`, in milliseconds: about as long as a person waits. */
const defaultTimeoutMs = 5_000;

/** Options of {@link createPlants}. */
export interface PlantsOptions extends PlantClientOptions {
  /** Milliseconds that a call may take with all its attempts. Default: 5,000. */
  readonly timeoutMs?: number;
}

/** Options of one call of {@link Plants}. */
export interface CallOptions {
  /** Milliseconds that this call may take with all its attempts. */
  readonly timeoutMs?: number;
  /** Gives up the call when it is aborted. The plant may be deleted nevertheless. */
  readonly signal?: AbortSignal;
  /**
   * Makes this call and all others with the same key one deletion, for a program that repeats a call that had no
   * outcome: 1 to 128 printable ASCII characters, such as a UUID, for one plant alone. Default: a new key for each call,
   * shared by its attempts.
   *
   * With `null` no key is sent and the call is not retried: it rejects where the outcome is unknown, and a program that
   * repeats it may get "not-found" for a plant that the first call has deleted.
   */
  readonly idempotencyKey?: string | null;
}

const plantsOptionNames: OptionNames<PlantsOptions> = { ...plantClientOptionNames, timeoutMs: true };
const callOptionNames: OptionNames<CallOptions> = { timeoutMs: true, signal: true, idempotencyKey: true };

/** What became of a plant: deleted by this call, or by an earlier one with its idempotency key, or not there. */
export type DeleteOutcome = "deleted" | "not-found";

/** The plants of a server, over gRPC. */
export interface Plants {
  /**
   * Deletes one plant. Attempts that the server could not accept, or whose response was lost, are repeated within the
   * timeout, with the same idempotency key; without a key there is one attempt.
   *
   * @throws PlantsError for every other end of the call; TypeError for options that do not exist
   */
  delete(id: bigint, options?: CallOptions): Promise<DeleteOutcome>;
  /** Closes the connection; calls in flight fail. */
  close(): void;
}

/** The error of a call that had no outcome. Its message repeats the server's, and says what to do. */
export class PlantsError extends Error {
  override readonly name = "PlantsError";
  /** The code of gRPC, by its name. */
  readonly code: keyof typeof status;

  constructor(code: keyof typeof status, details: string, cause: unknown, isKeyed = true) {
    const advice = adviceByCode(isKeyed ? repeatable : unrepeatable)[code];
    super(`${code}: ${details}${advice === undefined ? "" : `; ${advice}`}`, { cause });
    this.code = code;
  }
}

const repeatable = "the plant may have been deleted; you can repeat the call safely";
const unrepeatable = "the plant may have been deleted, and without an idempotency key a repeated call may return not-found";

const adviceByCode = (ofUnknownOutcome: string): Partial<Record<keyof typeof status, string>> => ({
  UNAUTHENTICATED: "use a token that the server knows and that has not expired",
  PERMISSION_DENIED: "use a token with the scope plants:delete",
  UNAVAILABLE: `check the address, and whether the server uses TLS; ${ofUnknownOutcome}`,
  DEADLINE_EXCEEDED: `${ofUnknownOutcome}; set timeoutMs to allow more time`,
  CANCELLED: ofUnknownOutcome,
  RESOURCE_EXHAUSTED: "retry later",
  ALREADY_EXISTS: "use a separate idempotency key for each plant",
});

/**
 * Creates a client whose calls are promises with a deadline. Close it when it is no longer needed.
 *
 * @throws TypeError for options that do not exist; Error when the token is empty, or contains a character that a token cannot have
 *
 * @example
 * ```ts
 * const plants = createPlants({ address: "plants.example:443", token });
 * const outcome = await plants.delete(42n);
 * ```
 */
export function createPlants(options: PlantsOptions): Plants {
  refuseUnknownOptions(options, plantsOptionNames, "createPlants");
  const { timeoutMs: usualTimeoutMs = defaultTimeoutMs, ...clientOptions } = options;
  const client = createPlantClient(clientOptions);
  return {
    delete: (id, callOptions = {}) =>
      new Promise((resolve, reject) => {
        refuseUnknownOptions(callOptions, callOptionNames, "delete");
        const { timeoutMs = usualTimeoutMs, signal, idempotencyKey } = callOptions;
        checkArguments(id, idempotencyKey);
        const deadline = Date.now() + timeoutMs;
        const metadata = new Metadata();
        if (idempotencyKey !== undefined) metadata.set(idempotencyKeyName, toMetadata(idempotencyKey));
        const call = client.deletePlant({ id }, metadata, { deadline }, (error) => {
          signal?.removeEventListener("abort", cancel);
          if (error === null) resolve("deleted");
          else if (error.code === status.NOT_FOUND) resolve("not-found");
          else reject(toPlantsError(error, idempotencyKey !== null));
        });
        const cancel = (): void => call.cancel();
        if (signal?.aborted === true) cancel();
        else signal?.addEventListener("abort", cancel);
      }),
    close: () => client.close(),
  };
}

// `createPlantClient` sends no key where it finds an empty one.
function toMetadata(idempotencyKey: string | null): string {
  return idempotencyKey === null ? "" : quoteIdempotencyKey(idempotencyKey);
}

// grpc-js would throw errors of another type, which quote the key.
function checkArguments(id: unknown, idempotencyKey: unknown): void {
  // Programs without types pass numbers, which have 53 bits.
  if (typeof id !== "bigint" || BigInt.asIntN(64, id) !== id)
    throw invalidArgument("id must be a 64-bit bigint such as 42n");
  if (idempotencyKey === undefined || idempotencyKey === null) return;
  if (typeof idempotencyKey === "string" && /^[ -~]{1,128}$/.test(idempotencyKey)) return;
  throw invalidArgument("idempotencyKey must be a string of 1 to 128 printable ASCII characters");
}

function invalidArgument(details: string): PlantsError {
  return new PlantsError("INVALID_ARGUMENT", details, undefined);
}

function toPlantsError(error: ServiceError, isKeyed: boolean): PlantsError {
  const [name = ""] = Object.entries(status).find(([, code]) => code === error.code) ?? [];
  return new PlantsError(isCodeName(name) ? name : "UNKNOWN", error.details, error, isKeyed);
}

function isCodeName(name: string): name is keyof typeof status {
  return name in status;
}
