import {
  type ChannelCredentials,
  credentials,
  type Interceptor,
  InterceptingCall,
  Metadata,
  status,
} from "@grpc/grpc-js";
import { PlantServiceClient } from "../gen/grpc-js/plantstore/v1/plant_service.ts";

/** How to reach a plant store. */
export interface PlantClientOptions {
  /** Host and port, as gRPC names a target: "127.0.0.1:8080", "dns:///plants.example:443". */
  readonly address: string;
  /** The bearer token, or where to get it for each call, for tokens that expire. */
  readonly token: string | (() => string | Promise<string>);
  /**
   * How the connection is secured: the system's certificates by default.
   *
   * `credentials.createInsecure()` sends the token in clear: for a server on this machine only.
   */
  readonly credentials?: ChannelCredentials;
}

// gRFC A6. UNAVAILABLE is the one code that says "not now". Deleting is idempotent, so that a repeated call
// harms nothing; but when the first attempt's answer was lost, the second may say NOT_FOUND of a plant
// that this very call deleted.
const serviceConfig = JSON.stringify({
  methodConfig: [
    {
      name: [{ service: PlantServiceClient.serviceName }],
      retryPolicy: {
        maxAttempts: 4,
        initialBackoff: "0.1s",
        maxBackoff: "2s",
        backoffMultiplier: 2,
        retryableStatusCodes: ["UNAVAILABLE"],
      },
    },
  ],
});

/**
 * Creates a client that sends the token with every call and repeats calls that the server could not
 * take, up to four attempts within the call's deadline.
 *
 * Give each call a deadline; without one a call waits as long as the server does. Close the client when
 * it is no longer needed.
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
  return new PlantServiceClient(options.address, options.credentials ?? credentials.createSsl(), {
    interceptors: [bearer(options.token)],
    "grpc.service_config": serviceConfig,
  });
}

// An interceptor rather than call credentials: those refuse a connection without TLS, also to this machine.
function bearer(token: PlantClientOptions["token"]): Interceptor {
  return (callOptions, nextCall) => {
    return new InterceptingCall(nextCall(callOptions), {
      start: (metadata, listener, next) => {
        const send = (text: string): void => {
          metadata.set("authorization", `Bearer ${text}`);
          next(metadata, listener);
        };
        if (typeof token === "string") return send(token);
        Promise.resolve()
          .then(token)
          .then(send, (reason: unknown) => {
            const details = `the token could not be had: ${String(reason)}`;
            listener.onReceiveStatus({ code: status.UNAUTHENTICATED, details, metadata: new Metadata() });
          });
      },
    });
  };
}
