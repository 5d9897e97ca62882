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
import { type OptionNames, refuseUnknownOptions, required } from "@plantstore/http";
import { clientRules, isDeletion } from "./client-rules.ts";
import { credentialsOf } from "./credential.ts";
import { PlantServiceClient } from "../gen/grpc-js/plantstore/v1/plant_service.ts";

/** Options for {@link createPlantStub}. */
export interface PlantStubOptions {
  /** Host and port, as a gRPC target: "127.0.0.1:8080", "dns:///plants.example:443". */
  readonly address: string;
  /** The bearer token, or a function that returns each call's token, for tokens that expire. */
  readonly token: string | (() => string | Promise<string>);
  /**
   * The connection's security. By default TLS with the system's certificates.
   *
   * `credentials.createInsecure()` sends the token as plain text, which is acceptable only on the same machine.
   */
  readonly credentials?: ChannelCredentials;
}

/** The option names in {@link PlantStubOptions}. */
export const plantStubOptionNames: OptionNames<PlantStubOptions> = {
  address: required,
  token: required,
  credentials: true,
};

// The gRFC A6 retry policy. UNAVAILABLE is temporary, and so is RESOURCE_EXHAUSTED from this server: too many calls per
// second, or too many queued deletions. AIP-194 recommends retrying RESOURCE_EXHAUSTED only if it does not last long.
// The server sends the delay in `grpc-retry-pushback-ms`, which grpc-js respects. A message that is too large would get
// the same code, but a message with an id never is. All attempts for a deletion have the same idempotency key, so if
// the first response was lost, the second attempt gets the same response.
//
// grpc-js also converts HTTP/2's ENHANCE_YOUR_CALM, by which the server or a proxy asks a client to slow down without a
// delay, to RESOURCE_EXHAUSTED. A retry policy depends only on the code, so such a call is also retried after the
// backoff below, at most three times.
const serviceConfig = JSON.stringify({
  methodConfig: [
    {
      // Only for methods with a rule, because the service's other methods might not be idempotent.
      name: Object.values(clientRules).map(({ path }) => {
        const [, service, method] = path.split("/");
        return { service, method };
      }),
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
 * Creates a generated stub that sends the token with every call, and an idempotency key with every deletion. If the
 * server could not accept a call, the stub retries after the delay that the server requests, or otherwise after 0.1 s,
 * doubled each time: up to four attempts within the call's deadline. The key is new, unless the call's metadata has an
 * `idempotency-key`. If that is empty, no key is sent and there is one attempt. If a first attempt's response was lost,
 * a second attempt without a key would report the deleted plant as not found.
 *
 * Set a deadline for each call. Without one, a call waits as long as the server does. Close the client when it is no
 * longer needed.
 *
 * @throws TypeError for unknown options; Error when the token is empty, or contains a character that tokens must not
 * have
 *
 * @example
 * ```ts
 * const client = createPlantStub({ address: "plants.example:443", token });
 * client.deletePlant({ id: 42n }, new Metadata(), { deadline: Date.now() + 5_000 }, (error) => {
 *   if (error?.code === status.NOT_FOUND) console.log("there is no plant 42");
 * });
 * ```
 */
export function createPlantStub(options: PlantStubOptions): PlantServiceClient {
  refuseUnknownOptions(options, plantStubOptionNames, "createPlantStub");
  const { address, credentials: security = credentials.createSsl() } = options;
  // In grpc-js, retries are a channel option. This channel also ignores a retry policy from DNS (gRFC A2). The channel
  // still sends a call again if the server has certainly not processed it (RFC 9113 §8.7).
  const channelWithoutRetries = new Channel(address, security, { "grpc.enable_retries": 0 });
  const withoutRetries: ClientOptions["callInvocationTransformer"] = (call) =>
    isDeletion(call.methodDefinition.path) && lacksIdempotencyKey(call.metadata)
      ? { ...call, channel: channelWithoutRetries }
      : call;
  const client = new PlantServiceClient(address, security, {
    interceptors: [sendIdempotencyKey, bearer(options.token)],
    callInvocationTransformer: withoutRetries,
    "grpc.service_config": serviceConfig,
  });
  const close = (): void => {
    PlantServiceClient.prototype.close.call(client);
    channelWithoutRetries.close();
  };
  return Object.assign(client, { close });
}

/** The idempotency key's metadata. */
export const idempotencyKeyName = "idempotency-key";

/**
 * Returns whether a call is sent without a key, which an empty value requests. A valid key is never empty, because it
 * includes two quotes.
 */
function lacksIdempotencyKey(metadata: Metadata): boolean {
  return metadata.get(idempotencyKeyName)[0] === "";
}

/** Returns a key as metadata: a structured-field string (RFC 9651 §4.1.6) in double quotes. */
export function quoteIdempotencyKey(key: string): string {
  return `"${key.replaceAll(/["\\]/g, "\\$&")}"`;
}

// Interceptors are called once per call, not per attempt.
const sendIdempotencyKey: Interceptor = (callOptions, nextCall) => {
  const call = nextCall(callOptions);
  if (!isDeletion(callOptions.method_definition.path)) return new InterceptingCall(call);
  return new InterceptingCall(call, {
    start: (original, listener, next) => {
      // Changes a copy, because the caller may use the object for another call.
      const metadata = original.clone();
      if (lacksIdempotencyKey(metadata)) metadata.remove(idempotencyKeyName);
      else if (metadata.get(idempotencyKeyName).length === 0)
        metadata.set(idempotencyKeyName, quoteIdempotencyKey(randomUUID()));
      next(metadata, listener);
    },
  });
};

// An interceptor instead of call credentials, because grpc-js refuses those on a connection without TLS, even to the
// same machine.
function bearer(token: PlantStubOptions["token"]): Interceptor {
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
