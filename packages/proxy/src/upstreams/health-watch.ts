import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { ErrorCode, noBytes, readHeaderField } from "@plantstore/gateway/exchange";
import {
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as Status,
  HealthCheckResponseSchema,
} from "@plantstore/gateway/internal/gen/grpc/health/v1/health_pb.js";
import {
  type ResponseReceiver,
  type ResponseSection,
  type ClientConnection,
  type ClientStream,
  StableFields,
} from "@plantstore/http-engine/client";
import { ConnectBackoff } from "./connect-backoff.ts";
import type { UpstreamAddress } from "./upstream-address.ts";

/** Bytes of a message that says how a server is. 1 KiB: it is one number. */
const messageBytesMax = 1_024;

/** Bytes before each message: its flags and its length (gRPC over HTTP/2, "Length-Prefixed-Message"). */
const prefixBytes = 5;

/** gRPC's code for a method that a server does not have. */
const unimplemented = "12";

/**
 * Asks a server how a service is, for as long as its connection takes calls (gRFC A17). Until it has said SERVING, it is
 * not healthy; a server without `grpc.health.v1` is. If the answer ends, the question is repeated, with a back-off.
 */
export class HealthWatch implements ResponseReceiver {
  readonly #connection: ClientConnection;
  readonly #onHealth: (healthy: boolean) => void;
  readonly #fields: StableFields;
  readonly #question: Buffer;
  readonly #backoff = new ConnectBackoff();
  #stream: ClientStream | undefined;
  #begunAtMs = 0;
  #stopped = false;
  /** What has come of a message that is not complete. */
  #rest: Uint8Array = noBytes;

  constructor(
    connection: ClientConnection,
    { scheme, authority }: UpstreamAddress,
    service: string,
    onHealth: (healthy: boolean) => void,
  ) {
    this.#connection = connection;
    this.#onHealth = onHealth;
    const path = "/grpc.health.v1.Health/Watch";
    const target = [":method", "POST", ":scheme", scheme, ":path", path, ":authority", authority];
    this.#fields = new StableFields([...target, "te", "trailers", "content-type", "application/grpc+proto"]);
    const message = toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service }));
    this.#question = Buffer.alloc(prefixBytes + message.byteLength);
    this.#question.set(message, this.#question.writeUInt32BE(message.byteLength, 1));
  }

  /** Asks. There must be room for a stream. */
  start(): void {
    this.#begunAtMs = performance.now();
    this.#rest = noBytes;
    this.#stream = this.#connection.open(this.#fields, noBytes, this, "watch");
    this.#stream.end(this.#question);
  }

  /** Asks no more. What is being answered ends with the connection. */
  stop(): void {
    this.#stopped = true;
  }

  onHead({ fields, httpStatus }: ResponseSection, ended: boolean): void {
    if (ended) this.#ended(fields);
    else if (httpStatus !== 200) this.#refuse();
  }

  onData(piece: Uint8Array): void {
    this.#stream?.consumed(piece.byteLength);
    const bytes = Buffer.concat([this.#rest, piece]);
    let at = 0;
    while (bytes.byteLength - at >= prefixBytes) {
      const length = bytes.readUInt32BE(at + 1);
      if (bytes[at] !== 0 || length > messageBytesMax) return this.#refuse();
      const end = at + prefixBytes + length;
      if (end > bytes.byteLength) break;
      if (!this.#take(bytes.subarray(at + prefixBytes, end))) return this.#refuse();
      at = end;
    }
    this.#rest = bytes.subarray(at);
  }

  onEnd(trailer: ResponseSection | undefined): void {
    this.#ended(trailer?.fields ?? []);
  }

  /** Takes the server for one that is not healthy, and asks again later. */
  onReset(): void {
    if (this.#stopped) return;
    const untilMs = this.#backoff.failed(this.#begunAtMs);
    setTimeout(() => this.#again(), Math.max(0, untilMs - performance.now())).unref();
    this.#onHealth(false);
  }

  onWritable(): void {}

  #take(message: Uint8Array): boolean {
    try {
      const { status } = fromBinary(HealthCheckResponseSchema, message);
      this.#backoff.succeeded();
      this.#onHealth(status === Status.SERVING);
      return true;
    } catch {
      return false;
    }
  }

  #ended(trailer: readonly string[]): void {
    if (readHeaderField(trailer, "grpc-status") === unimplemented) this.#onHealth(true);
    else this.onReset();
  }

  #refuse(): void {
    this.#stream?.reset(ErrorCode.cancel);
  }

  #again(): void {
    if (this.#connection.availableStreams > 0) this.start();
    else this.onReset();
  }
}
