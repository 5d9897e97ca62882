import { randomUUID } from "node:crypto";
import {
  Channel,
  type ChannelCredentials,
  type ClientOptions,
  credentials,
  type Interceptor,
  InterceptingCall,
  Metadata,
  status,
} from "@grpc/grpc-js";
import { type OptionNames, refuseUnknownOptions, required } from "@plantstore/gateway/options";
import { credentialsOf } from "./credential.ts";
import { PlantServiceClient, PlantServiceService } from "../gen/grpc-js/plantstore/v1/plant_service.ts";

/** Options of {@link createPlantClient}. */
export interface PlantClientOptions {
  /** Host and port, as a gRPC target: "127.0.0.1:8080", "dns:///plants.example:443". */
  readonly address: string;
  /** The bearer token, or a function that returns it for each call, for tokens that expire. */
  readonly token: string | (() => string | Promise<string>);
  /**
   * How the connection is secured; by default with TLS and the certificates of the system.
   *
   * `credentials.createInsecure()` sends the token as plain text, which is only acceptable on the same machine.
   */
  readonly credentials?: ChannelCredentials;
}

/** The names of {@link PlantClientOptions}. */
export const plantClientOptionNames: OptionNames<PlantClientOptions> = {
  address: required,
  token: required,
  credentials: true,
};

const { path } = PlantServiceService.deletePlant;
const [, service, method] = path.split("/");

// gRFC A6. UNAVAILABLE means "not now", and so does RESOURCE_EXHAUSTED from this server: too many calls a second, or too
// many deletions that wait. AIP-194 repeats the latter only where it soon passes, and the server says when
// (`grpc-retry-pushback-ms`), for which grpc-js waits. A message that is too large would have that code as well, but one
// id never is. All attempts carry one idempotency key, so a second one gets the response of a first whose response was
// lost.
//
// grpc-js also makes RESOURCE_EXHAUSTED of HTTP/2's ENHANCE_YOUR_CALM, by which the server or a proxy asks a client to
// slow down without saying for how long. A retry policy goes by the code alone, so such a call is repeated as well: after
// the back-off below, and three times at most.
const serviceConfig = JSON.stringify({
  methodConfig: [
    {
      // Not of the whole service, because not every method need be idempotent.
      name: [{ service, method }],
      retryPolicy: {
        maxAttempts: 4,
        initialBackoff: "0.1s",
        maxBackoff: "2s",
        backoffMultiplier: 2,
        retryableStatusCodes: ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
      },
    },
  ],
});

/**
 * Creates a client that sends the token with every call, and an idempotency key with every deletion, which it retries
 * where the server could not accept it, after the wait that it asks for or, if it asks for none, 0.1 s, doubled each
 * time: up to four attempts within the deadline of the call. The key is a new one, unless the metadata of the call has
 * an `idempotency-key`. An empty one there sends none; then there is one attempt, because the server would report a plant
 * that a lost attempt has deleted as not found.
 *
 * Give each call a deadline; without one it waits as long as the server does. Close the client when it is no longer
 * needed.
 *
 * @throws TypeError for options that do not exist; Error when the token is empty, or contains a character that a token cannot have
 *
 * @example
 * ```ts
 * const client = createPlantClient({ address: "plants.example:443", token });
 * client.deletePlant({ id: 42n }, new Metadata(), { deadline: Date.now() + 5_000 }, (error) => {
 *   if (error?.code === status.NOT_FOUND) console.log("there is no plant 42");
 * });
 * ```
 */
export function createPlantClient(options: PlantClientOptions): PlantServiceClient {
  refuseUnknownOptions(options, plantClientOptionNames, "createPlantClient");
  const { address, credentials: security = credentials.createSsl() } = options;
  // grpc-js decides by the channel whether a call is retried. This one also ignores a retry policy of the DNS (gRFC A2).
  // What the server has not processed (RFC 9113 §8.7) it sends again nevertheless.
  const unretried = new Channel(address, security, { "grpc.enable_retries": 0 });
  const withoutRetries: ClientOptions["callInvocationTransformer"] = (call) =>
    call.methodDefinition.path === path && sendsNoKey(call.metadata) ? { ...call, channel: unretried } : call;
  const client = new PlantServiceClient(address, security, {
    interceptors: [sendIdempotencyKey, bearer(options.token)],
    callInvocationTransformer: withoutRetries,
    "grpc.service_config": serviceConfig,
  });
  const close = (): void => {
    PlantServiceClient.prototype.close.call(client);
    unretried.close();
  };
  return Object.assign(client, { close });
}

/** The metadata that carries the key. */
export const idempotencyKeyName = "idempotency-key";

/** Whether a call is to be sent without a key: an empty one is not a key, which has two quotes at least. */
function sendsNoKey(metadata: Metadata): boolean {
  return metadata.get(idempotencyKeyName)[0] === "";
}

/** Writes a key as metadata: a structured-field string (RFC 9651 §4.1.6), which has double quotes. */
export function quoteIdempotencyKey(key: string): string {
  return `"${key.replaceAll(/["\\]/g, "\\$&")}"`;
}

// Interceptors see a call once, whatever the number of its attempts.
const sendIdempotencyKey: Interceptor = (callOptions, nextCall) => {
  const call = nextCall(callOptions);
  if (callOptions.method_definition.path !== path) return new InterceptingCall(call);
  return new InterceptingCall(call, {
    start: (given, listener, next) => {
      // A copy, because the caller may use the object for another call.
      const metadata = given.clone();
      if (sendsNoKey(metadata)) metadata.remove(idempotencyKeyName);
      else if (metadata.get(idempotencyKeyName).length === 0)
        metadata.set(idempotencyKeyName, quoteIdempotencyKey(randomUUID()));
      next(metadata, listener);
    },
  });
};

// An interceptor rather than call credentials, which refuse a connection without TLS even to the same machine.
function bearer(token: PlantClientOptions["token"]): Interceptor {
  const credential = credentialsOf(token);
  return (callOptions, nextCall) => {
    return new InterceptingCall(nextCall(callOptions), {
      start: (metadata, listener, next) => {
        const send = (text: string): void => {
          metadata.set("authorization", text);
          next(metadata, listener);
        };
        if (typeof credential === "string") return send(credential);
        credential().then(send, (reason: unknown) => {
          const details = `cannot obtain the token: ${String(reason)}`;
          listener.onReceiveStatus({ code: status.UNAUTHENTICATED, details, metadata: new Metadata() });
        });
      },
    });
  };
}
