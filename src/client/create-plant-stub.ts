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
import { type OptionNames, refuseUnknownOptions, required } from "@protoport/gateway/options";
import { startDeadline } from "@protoport/gateway/exchange";
import { clientRules, isDeletion } from "./client-rules.ts";
import { credentialsOf } from "./credential.ts";
import { PlantServiceClient } from "../gen/grpc-js/plantstore/v1/plant_service.ts";

/** Options for {@link createPlantStub}. */
export interface PlantStubOptions {
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
}

/** The option names in {@link PlantStubOptions}. */
export const plantStubOptionNames: OptionNames<PlantStubOptions> = {
  address: required,
  token: required,
  credentials: true,
};

// The gRFC A6 retry policy. UNAVAILABLE is temporary. This server sends RESOURCE_EXHAUSTED for too many calls per
// second and for a full queue, which are also temporary. AIP-194 recommends retrying RESOURCE_EXHAUSTED only if the
// shortage is brief. The server sends the delay in `grpc-retry-pushback-ms`, which grpc-js respects. The server also
// sends RESOURCE_EXHAUSTED for a message over the size limit, but a deletion is always smaller. All attempts for a
// deletion have the same idempotency key. If the first response was lost, the second attempt gets the same response.
//
// A server or proxy can send HTTP/2's ENHANCE_YOUR_CALM, which contains no retry delay. grpc-js converts
// ENHANCE_YOUR_CALM to RESOURCE_EXHAUSTED. A retry policy is based on the status code, so grpc-js retries the call
// after the backoff, at most three times.
const serviceConfig = JSON.stringify({
  methodConfig: [
    {
      // Applies only to methods with a rule, because other methods might not be idempotent.
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
 * server could not accept a call, the stub retries after the delay that the server requests. Without a requested delay,
 * the stub retries after 0.1 s, and doubles the delay each time. A call has up to four attempts within its deadline.
 *
 * Each deletion has a new key, unless the call's metadata has an `idempotency-key`. With an empty `idempotency-key`,
 * the stub sends no key and attempts the call only once. After a lost response, a second attempt without a key would
 * report the deleted plant as not found.
 *
 * Set a deadline for each call. Without a deadline, a call waits as long as the server does. Close the client after the
 * last call.
 *
 * @throws TypeError for unknown options; Error when the token is empty, or contains a character that RFC 6750 does not
 * allow
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
  // In grpc-js, retries are a channel option. Without retries, the channel also ignores a retry policy from DNS (gRFC
  // A2), but still resends a call that the server has certainly not processed (RFC 9113 §8.7).
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

/** The metadata name for the idempotency key. */
export const idempotencyKeyName = "idempotency-key";

// An empty value means no key. A valid key is never empty, because it includes two quotes.
function lacksIdempotencyKey(metadata: Metadata): boolean {
  return metadata.get(idempotencyKeyName)[0] === "";
}

/** Returns a key as metadata, which is a structured-field string in double quotes (RFC 9651 §4.1.6). */
export function quoteIdempotencyKey(key: string): string {
  return `"${key.replaceAll(/["\\]/g, "\\$&")}"`;
}

// grpc-js calls an interceptor once per call, and so all attempts have the same key.
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

// Uses an interceptor, because grpc-js refuses call credentials on a connection without TLS, even to the same machine.
function bearer(token: PlantStubOptions["token"]): Interceptor {
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
        const { deadline } = callOptions;
        const expire = (): void => end?.(status.DEADLINE_EXCEEDED, "the token was not obtained before the deadline");
        const stopTimer =
          deadline === undefined ? undefined : startDeadline(Math.max(0, Number(deadline) - Date.now()), expire);
        const stopWaiting = (): void => {
          end = undefined;
          stopTimer?.();
        };
        end = (code, details) => {
          stopWaiting();
          call.cancelWithStatus(code, details);
          process.nextTick(() => listener.onReceiveStatus({ code, details, metadata: new Metadata() }));
        };
        credential().then(
          (text) => {
            if (end === undefined) return;
            stopWaiting();
            send(text);
          },
          (reason: unknown) => end?.(status.UNAUTHENTICATED, `cannot obtain the token: ${String(reason)}`),
        );
      },
      cancel: (next) => {
        if (end === undefined) next();
        else end(status.CANCELLED, "Cancelled on client");
      },
    });
  };
}
