import { Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { type OptionNames, refuseUnknownOptions } from "@protoport/gateway/options";
import { type ClientRule, clientRules } from "./client-rules.ts";
import {
  createPlantStub,
  idempotencyKeyName,
  plantStubOptionNames,
  type PlantStubOptions,
  quoteIdempotencyKey,
} from "./create-plant-stub.ts";

/** Default for `timeoutMs`, in milliseconds: about as long as a user waits for a response. */
const defaultTimeoutMs = 5_000;

/** Options for {@link createPlantClient}. */
export interface PlantClientOptions extends PlantStubOptions {
  /** Timeout for a call including retries, in milliseconds. Default 5,000. */
  readonly timeoutMs?: number;
}

/** Options for one call by {@link PlantClient}. */
export interface CallOptions {
  /** Timeout for this call including retries, in milliseconds. */
  readonly timeoutMs?: number;
  /** Cancels the call. The server may still delete the plant. */
  readonly signal?: AbortSignal;
  /**
   * Calls with the same key count as one deletion, so a program can repeat a call with an unknown outcome. A key, such
   * as a UUID, has 1 to 128 printable ASCII characters, and belongs to a single plant. By default, each call has a new
   * key, and all attempts of a call have the same key.
   *
   * With `null`, the call has no key and is not retried. The call rejects if the outcome is unknown. A repeated call
   * without a key may return "not-found" for a plant that the first call deleted.
   */
  readonly idempotencyKey?: string | null;
}

const plantClientOptionNames: OptionNames<PlantClientOptions> = { ...plantStubOptionNames, timeoutMs: true };
const callOptionNames: OptionNames<CallOptions> = { timeoutMs: true, signal: true, idempotencyKey: true };

/** A deletion's outcome. "deleted": this call, or an earlier call with its idempotency key, has deleted the plant. */
export type DeleteOutcome = "deleted" | "not-found";

/** A client for the plant store, over gRPC. */
export interface PlantClient {
  /**
   * Deletes one plant. If the server could not accept the call, or the response was lost, the client retries within
   * the timeout, with the same idempotency key. Without a key, the client attempts the call only once.
   *
   * @throws PlantClientError when the call fails; TypeError for unknown options
   */
  delete(id: bigint, options?: CallOptions): Promise<DeleteOutcome>;
  /** Closes the connection. Running calls fail. */
  close(): void;
}

/** The error for a failed call. The message consists of the server's message and advice for the caller. */
export class PlantClientError extends Error {
  override readonly name = "PlantClientError";
  /** The name of the gRPC status code. */
  readonly code: keyof typeof status;

  constructor(code: keyof typeof status, details: string, cause: unknown, advice?: string) {
    super(`${code}: ${details}${advice === undefined ? "" : `; ${advice}`}`, { cause });
    this.code = code;
  }
}

const repeatable = "you can repeat the call safely";
const maybeDeleted = "the plant may have been deleted";
const unrepeatable = "without the same idempotency key a repeated call may return not-found";

/** Returns the advice for callers of an RPC, by status code. */
function adviceByCode({ scope, deletes }: ClientRule, isKeyed: boolean): Partial<Record<keyof typeof status, string>> {
  const ofDeletion = isKeyed ? `${maybeDeleted}; ${repeatable}` : `${maybeDeleted}, and ${unrepeatable}`;
  const ofUnknownOutcome = deletes ? ofDeletion : repeatable;
  return {
    UNAUTHENTICATED: "use a token that the server knows and that has not expired",
    PERMISSION_DENIED: `use a token with the scope ${scope}`,
    UNAVAILABLE: `check the address, and whether the server uses TLS; ${ofUnknownOutcome}`,
    DEADLINE_EXCEEDED: `${ofUnknownOutcome}; set timeoutMs to allow more time`,
    CANCELLED: ofUnknownOutcome,
    RESOURCE_EXHAUSTED: "retry later",
    ALREADY_EXISTS: "use a separate idempotency key for each plant",
  };
}

/**
 * Creates a client whose calls are promises with a deadline. Close the client after the last call.
 *
 * @throws TypeError for unknown options; Error when the token is empty, or contains a character that RFC 6750 does not
 * allow
 *
 * @example
 * ```ts
 * const plants = createPlantClient({ address: "plants.example:443", token });
 * const outcome = await plants.delete(42n);
 * ```
 */
export function createPlantClient(options: PlantClientOptions): PlantClient {
  refuseUnknownOptions(options, plantClientOptionNames, "createPlantClient");
  const { timeoutMs: clientTimeoutMs = defaultTimeoutMs, ...stubOptions } = options;
  const stub = createPlantStub(stubOptions);
  return {
    delete: (id, callOptions = {}) =>
      new Promise((resolve, reject) => {
        refuseUnknownOptions(callOptions, callOptionNames, "delete");
        const { timeoutMs = clientTimeoutMs, signal, idempotencyKey } = callOptions;
        checkArguments(id, idempotencyKey);
        const deadline = Date.now() + timeoutMs;
        const metadata = new Metadata();
        if (idempotencyKey !== undefined) metadata.set(idempotencyKeyName, toMetadata(idempotencyKey));
        const call = stub.deletePlant({ id }, metadata, { deadline }, (error) => {
          signal?.removeEventListener("abort", cancel);
          if (error === null) resolve("deleted");
          else if (error.code === status.NOT_FOUND) resolve("not-found");
          else reject(toPlantClientError(error, clientRules.deletePlant, typeof idempotencyKey === "string"));
        });
        const cancel = (): void => call.cancel();
        if (signal?.aborted === true) cancel();
        else signal?.addEventListener("abort", cancel);
      }),
    close: () => stub.close(),
  };
}

// An empty string makes `createPlantStub` send no key.
function toMetadata(idempotencyKey: string | null): string {
  return idempotencyKey === null ? "" : quoteIdempotencyKey(idempotencyKey);
}

// Checks the key, because the error from grpc-js would contain the key.
function checkArguments(id: unknown, idempotencyKey: unknown): void {
  // A JavaScript program may pass a number, which has only 53 bits.
  if (typeof id !== "bigint" || BigInt.asIntN(64, id) !== id)
    throw invalidArgument("id must be a 64-bit bigint such as 42n");
  if (idempotencyKey === undefined || idempotencyKey === null) return;
  if (typeof idempotencyKey === "string" && /^[ -~]{1,128}$/.test(idempotencyKey)) return;
  throw invalidArgument("idempotencyKey must be a string of 1 to 128 printable ASCII characters");
}

function invalidArgument(details: string): PlantClientError {
  return new PlantClientError("INVALID_ARGUMENT", details, undefined);
}

/** Returns the error for a failed call. `isKeyed` is whether the caller knows the key of its deletion. */
function toPlantClientError(error: ServiceError, rule: ClientRule, isKeyed = true): PlantClientError {
  const [found = ""] = Object.entries(status).find(([, code]) => code === error.code) ?? [];
  const name = isCodeName(found) ? found : "UNKNOWN";
  return new PlantClientError(name, error.details, error, adviceByCode(rule, isKeyed)[name]);
}

function isCodeName(name: string): name is keyof typeof status {
  return name in status;
}
