import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { ErrorCode } from "@protoport/gateway/errors";
import { noBytes, readHeaderField } from "@protoport/gateway/exchange";
import {
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as Status,
  HealthCheckResponseSchema,
} from "@protoport/gateway/gen/grpc/health/v1/health_pb.js";
import {
  type ResponseReceiver,
  type ResponseSection,
  type ClientConnection,
  type ClientStream,
  StableFields,
} from "@protoport/gateway/http2-client";
import { ConnectBackoff } from "./connect-backoff.ts";
import type { UpstreamAddress } from "./upstream-address.ts";

/** Maximum bytes in a health response. 1 KiB is enough, because the response contains only one number. */
const maxMessageBytes = 1_024;

/** Bytes for flags and length before each message (gRPC over HTTP/2, "Length-Prefixed-Message"). */
const prefixBytes = 5;

/** The grpc-status for a method that the server does not implement. */
const unimplementedStatus = "12";

/** The HTTP status that gRPC maps to UNIMPLEMENTED. Connect servers send this status for unknown services. */
const unimplementedHttpStatus = 404;

/**
 * Watches a service's health on one connection while the connection accepts calls (gRFC A17). A server is healthy if it
 * reports SERVING or does not implement `grpc.health.v1`. A watch stream that ends is opened again with a backoff.
 */
export class HealthWatch implements ResponseReceiver {
  readonly #connection: ClientConnection;
  readonly #onHealth: (isHealthy: boolean) => void;
  readonly #fields: StableFields;
  readonly #request: Buffer;
  readonly #backoff = new ConnectBackoff();
  #stream: ClientStream | undefined;
  #begunAtMs = 0;
  #isStopped = false;
  /** The received bytes from an incomplete message. */
  #partial: Uint8Array = noBytes;

  constructor(
    connection: ClientConnection,
    { scheme, authority }: UpstreamAddress,
    service: string,
    onHealth: (isHealthy: boolean) => void,
  ) {
    this.#connection = connection;
    this.#onHealth = onHealth;
    const path = "/grpc.health.v1.Health/Watch";
    const target = [":method", "POST", ":scheme", scheme, ":path", path, ":authority", authority];
    this.#fields = new StableFields([...target, "te", "trailers", "content-type", "application/grpc+proto"]);
    const message = toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service }));
    this.#request = Buffer.alloc(prefixBytes + message.byteLength);
    this.#request.set(message, this.#request.writeUInt32BE(message.byteLength, 1));
  }

  /** Opens the watch stream. The connection must have a free stream. */
  start(): void {
    this.#begunAtMs = performance.now();
    this.#partial = noBytes;
    this.#stream = this.#connection.open(this.#fields, noBytes, this, "watch");
    this.#stream.end(this.#request);
  }

  /** Stops reopening the stream. An open stream ends with the connection. */
  stop(): void {
    this.#isStopped = true;
  }

  onHead({ fields, httpStatus }: ResponseSection, ended: boolean): void {
    if (httpStatus === unimplementedHttpStatus) this.#onNotFound(ended);
    else if (ended) this.#onStatus(fields);
    else if (httpStatus !== 200) this.#reset();
  }

  onData(piece: Uint8Array): void {
    this.#stream?.consumed(piece.byteLength);
    const bytes = Buffer.concat([this.#partial, piece]);
    let at = 0;
    while (bytes.byteLength - at >= prefixBytes) {
      const length = bytes.readUInt32BE(at + 1);
      if (bytes[at] !== 0 || length > maxMessageBytes) return this.#reset();
      const end = at + prefixBytes + length;
      if (end > bytes.byteLength) break;
      if (!this.#readMessage(bytes.subarray(at + prefixBytes, end))) return this.#reset();
      at = end;
    }
    this.#partial = bytes.subarray(at);
  }

  onEnd(trailer: ResponseSection | undefined): void {
    this.#onStatus(trailer?.fields ?? []);
  }

  /** Marks the server as unhealthy, and opens the stream again later. */
  onReset(): void {
    if (this.#isStopped) return;
    const retryAtMs = this.#backoff.failed(this.#begunAtMs);
    setTimeout(() => this.#retry(), Math.max(0, retryAtMs - performance.now())).unref();
    this.#onHealth(false);
  }

  onWritable(): void {}

  #readMessage(message: Uint8Array): boolean {
    try {
      const { status } = fromBinary(HealthCheckResponseSchema, message);
      this.#backoff.succeeded();
      this.#onHealth(status === Status.SERVING);
      return true;
    } catch {
      return false;
    }
  }

  #onStatus(trailer: readonly string[]): void {
    if (readHeaderField(trailer, "grpc-status") === unimplementedStatus) this.#onHealth(true);
    else this.onReset();
  }

  #onNotFound(ended: boolean): void {
    const stream = this.#stream;
    if (stream !== undefined && !ended) {
      stream.receiver = undefined;
      stream.reset(ErrorCode.cancel);
    }
    this.#onHealth(true);
  }

  #reset(): void {
    this.#stream?.reset(ErrorCode.cancel);
  }

  #retry(): void {
    if (this.#connection.availableStreams > 0) this.start();
    else this.onReset();
  }
}
