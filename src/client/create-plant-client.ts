import { randomUUID } from "node:crypto";
import {
  Channel,
  type ChannelCredentials,
  connectivityState,
  credentials,
  type Interceptor,
  InterceptingCall,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { startDeadline } from "@protoport/gateway/exchange";
import { type OptionNames, refuseUnknownOptions, required } from "@protoport/gateway/options";
import { PlantServiceClient, PlantServiceService } from "../gen/grpc-js/plantstore/v1/plant_service.ts";
import { credentialsOf } from "./credential.ts";

/** Default for `timeoutMs`, in milliseconds: about as long as a user waits for a response. */
const defaultTimeoutMs = 5_000;

/** Options for {@link createPlantClient}. */
export interface PlantClientOptions {
  /** The server's host and port as a gRPC target, such as "127.0.0.1:8080" or "dns:///plants.example:443". */
  readonly address: string;
  /** The bearer token, or a function that returns a token for each call. Pass a function if tokens expire. */
  readonly token: string | (() => string | Promise<string>);
  /**
   * The connection's security. Default TLS with the system's certificates.
   *
   * `credentials.createInsecure()` sends the token as plain text, and is acceptable only on the same machine.
   */
  readonly credentials?: ChannelCredentials;
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
   * With `null`, the call has no key and is not retried. A repeated call may return "not-found" for the plant.
   */
  readonly idempotencyKey?: string | null;
}

const plantClientOptionNames: OptionNames<PlantClientOptions> = {
  address: required,
  token: required,
  credentials: true,
  timeoutMs: true,
};
const callOptionNames: OptionNames<CallOptions> = { timeoutMs: true, signal: true, idempotencyKey: true };

/** A deletion's outcome. "deleted": this call, or an earlier call with its idempotency key, has deleted the plant. */
export type DeleteOutcome = "deleted" | "not-found";

/** A client for the plant store, over gRPC. */
export interface PlantClient {
  /**
   * Deletes one plant. If the server could not accept the call, or the response was lost, the client retries within
   * the timeout, with the same idempotency key. Without a key, the client attempts the call only once.
   *
   * @throws PlantClientError when the call fails; TypeError for unknown options, or a timeout that is not a number
   */
  delete(id: bigint, options?: CallOptions): Promise<DeleteOutcome>;
  /**
   * The generated stub, on the same connection. Sends the token with every call, and an idempotency key with every
   * deletion, unless the call's metadata has an `idempotency-key`. An empty one sends no key and attempts the call once.
   * A call has up to four attempts within its deadline. Without a deadline, it waits as long as the server does.
   */
  readonly stub: PlantServiceClient;
  /** Closes the connection after the calls that have been sent. Calls that wait fail with CANCELLED or UNAVAILABLE. */
  close(): void;
}

/** The error for a failed call. The message consists of the server's message and advice for the caller. */
export class PlantClientError extends Error {
  override readonly name = "PlantClientError";
  /** The name of the gRPC status code. */
  readonly code: keyof typeof status;

  constructor(code: keyof typeof status, details: string, cause?: unknown, advice?: string) {
    super(`${code}: ${details}${advice === undefined ? "" : `; ${advice}`}`, { cause });
    this.code = code;
  }
}

/** Returns the advice for a call with an unknown outcome. `key` is the caller's, and null if the call is not retried. */
function adviceOf(code: string, rpc: PlantRpc, key: CallOptions["idempotencyKey"]): string | undefined {
  const repeatable = "you can repeat the call safely";
  const unrepeatable = "without the same idempotency key a repeated call may return not-found";
  const repetition = typeof key === "string" ? `; ${repeatable}` : `, and ${unrepeatable}`;
  const ofDeletion = `the plant may have been deleted${repetition}`;
  const outcome = deletionPaths[rpc] === undefined ? repeatable : ofDeletion;
  if (code === "UNAVAILABLE") return `check the address, and whether the server uses TLS; ${outcome}`;
  if (code === "DEADLINE_EXCEEDED") return `${outcome}; set timeoutMs to allow more time`;
  // The last attempt was refused, but an earlier one may have deleted the plant.
  if (code === "RESOURCE_EXHAUSTED" && key !== null) return outcome;
  return ["CANCELLED", "INTERNAL", "UNKNOWN"].includes(code) ? outcome : undefined;
}

/**
 * Creates a client whose calls are promises with a deadline. Close the client after the last call.
 *
 * @throws TypeError for unknown options; Error for an empty token, or characters that RFC 6750 does not allow
 */
export function createPlantClient(options: PlantClientOptions): PlantClient {
  refuseUnknownOptions(options, plantClientOptionNames, "createPlantClient");
  const stub = openStub(options);
  return {
    delete: (id, callOptions = {}) =>
      new Promise((resolve, reject) => {
        refuseUnknownOptions(callOptions, callOptionNames, "delete");
        const { timeoutMs = options.timeoutMs ?? defaultTimeoutMs, signal, idempotencyKey } = callOptions;
        checkArguments(id, idempotencyKey, timeoutMs);
        if (stub.getChannel().getConnectivityState(false) === connectivityState.SHUTDOWN)
          throw new PlantClientError("CANCELLED", "the client is closed");
        const metadata = new Metadata();
        // An empty value makes the stub send no key.
        if (idempotencyKey !== undefined)
          metadata.set(keyName, idempotencyKey === null ? "" : quoteKey(idempotencyKey));
        const call = stub.deletePlant({ id }, metadata, { deadline: Date.now() + timeoutMs }, (error) => {
          signal?.removeEventListener("abort", cancel);
          if (error === null) resolve("deleted");
          else if (error.code === status.NOT_FOUND) resolve("not-found");
          else reject(toPlantClientError(error, "deletePlant", idempotencyKey));
        });
        const cancel = (): void => call.cancel();
        if (signal?.aborted === true) cancel();
        else signal?.addEventListener("abort", cancel);
      }),
    stub,
    close: () => stub.close(),
  };
}

// Checks the key, because the error from grpc-js would contain the key.
function checkArguments(id: unknown, idempotencyKey: unknown, timeoutMs: unknown): void {
  if (typeof timeoutMs !== "number" || Number.isNaN(timeoutMs))
    throw new TypeError(`timeoutMs must be a number of milliseconds, got the ${typeof timeoutMs} ${String(timeoutMs)}`);
  // A JavaScript program may pass a number, which has only 53 bits.
  if (typeof id !== "bigint" || BigInt.asIntN(64, id) !== id)
    throw new PlantClientError("INVALID_ARGUMENT", "id must be a 64-bit bigint such as 42n");
  const isKey = typeof idempotencyKey === "string" && /^[ -~]{1,128}$/.test(idempotencyKey);
  if (!isKey && idempotencyKey !== undefined && idempotencyKey !== null)
    throw new PlantClientError("INVALID_ARGUMENT", "idempotencyKey must be 1 to 128 printable ASCII characters");
}

function toPlantClientError(error: ServiceError, rpc: PlantRpc, key: CallOptions["idempotencyKey"]): PlantClientError {
  const name = status[error.code] ?? "";
  return new PlantClientError(isCodeName(name) ? name : "UNKNOWN", error.details, error, adviceOf(name, rpc, key));
}

function isCodeName(name: string): name is keyof typeof status {
  return name in status;
}

type PlantRpc = keyof typeof PlantServiceService;

/** The paths of the RPCs that delete. Retries of these need an idempotency key. An RPC without a row does not compile. */
const deletionPaths: Readonly<Record<PlantRpc, string | undefined>> = {
  deletePlant: PlantServiceService.deletePlant.path,
};

// The gRFC A6 retry policy. RESOURCE_EXHAUSTED means too many calls per second or a full queue, with the delay in
// `grpc-retry-pushback-ms`. A proxy's ENHANCE_YOUR_CALM becomes RESOURCE_EXHAUSTED without a delay.
const retryableStatusCodes = ["UNAVAILABLE", "RESOURCE_EXHAUSTED"];
const backoff = { initialBackoff: "0.1s", maxBackoff: "2s", backoffMultiplier: 2 };
const plantRetryPolicy = { maxAttempts: 4, ...backoff, retryableStatusCodes };

// Other methods might not be idempotent.
const retriedMethods = Object.values(PlantServiceService).map(({ path }) => {
  const [, service, method] = path.split("/");
  return { service, method };
});

function openStub({ address, token, credentials: given }: PlantClientOptions): PlantServiceClient {
  const security = given ?? credentials.createSsl();
  // In grpc-js, retries are a channel option. Without retries, the channel also ignores a retry policy from DNS (gRFC
  // A2), but still resends a call that the server has certainly not processed (RFC 9113 §8.7).
  const unretried = new Channel(address, security, { "grpc.enable_retries": 0 });
  const closing = new AbortController();
  const client = new PlantServiceClient(address, security, {
    interceptors: [sendIdempotencyKey, bearerInterceptor(token, closing.signal)],
    callInvocationTransformer: (call) =>
      isDeletion(call.methodDefinition) && hasEmptyKey(call.metadata) ? { ...call, channel: unretried } : call,
    "grpc.service_config": JSON.stringify({ methodConfig: [{ name: retriedMethods, retryPolicy: plantRetryPolicy }] }),
  });
  const close = client.close.bind(client);
  client.close = () => {
    closing.abort();
    close();
    unretried.close();
  };
  return client;
}

const isDeletion = ({ path }: { path: string }): boolean => Object.values(deletionPaths).includes(path);
const keyName = "idempotency-key";
// A valid key is never empty, because it includes two quotes.
const hasEmptyKey = (metadata: Metadata): boolean => metadata.get(keyName)[0] === "";

/** Returns a key as metadata, which is a structured-field string in double quotes (RFC 9651 §4.1.6). */
function quoteKey(key: string): string {
  return `"${key.replaceAll(/["\\]/g, "\\$&")}"`;
}

// grpc-js calls an interceptor once per call, and so all attempts have the same key.
const sendIdempotencyKey: Interceptor = (callOptions, nextCall) => {
  const call = nextCall(callOptions);
  if (!isDeletion(callOptions.method_definition)) return new InterceptingCall(call);
  return new InterceptingCall(call, {
    start: (original, listener, next) => {
      // Changes a copy, because the caller may use the object for another call.
      const metadata = original.clone();
      if (hasEmptyKey(metadata)) metadata.remove(keyName);
      else if (metadata.get(keyName).length === 0) metadata.set(keyName, quoteKey(randomUUID()));
      next(metadata, listener);
    },
  });
};

// Uses an interceptor, because grpc-js refuses call credentials on a connection without TLS, even to the same machine.
function bearerInterceptor(token: PlantClientOptions["token"], closing: AbortSignal): Interceptor {
  const credential = credentialsOf(token);
  return (callOptions, nextCall) => {
    const call = nextCall(callOptions);
    // Ends the call while its token is obtained. grpc-js has no listener before `next`, and would drop the status.
    let end: ((code: status, details: string) => void) | undefined;
    return new InterceptingCall(call, {
      start: (metadata, listener, next) => {
        const send = (text: string): void => {
          metadata.set("authorization", text);
          next(metadata, listener);
        };
        if (typeof credential === "string") return send(credential);
        const leftMs = Math.max(0, Number(callOptions.deadline ?? Number.POSITIVE_INFINITY) - Date.now());
        const expire = (): void => end?.(status.DEADLINE_EXCEEDED, "the token was not obtained before the deadline");
        const stopTimer = startDeadline(leftMs, expire);
        const cancel = (): void => end?.(status.CANCELLED, "the client was closed");
        closing.addEventListener("abort", cancel);
        const settle = (then: () => void): void => {
          if (end === undefined) return;
          end = undefined;
          stopTimer();
          closing.removeEventListener("abort", cancel);
          then();
        };
        end = (code, details) =>
          settle(() => {
            call.cancelWithStatus(code, details);
            process.nextTick(() => listener.onReceiveStatus({ code, details, metadata: new Metadata() }));
          });
        credential().then(
          (text) => settle(() => send(text)),
          (reason: unknown) => end?.(status.UNAUTHENTICATED, `cannot obtain the token: ${String(reason)}`),
        );
      },
      cancel: (next) => (end === undefined ? next() : end(status.CANCELLED, "Cancelled on client")),
    });
  };
}
