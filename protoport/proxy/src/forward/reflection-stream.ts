import { create, type DescMethodBiDiStreaming } from "@bufbuild/protobuf";
import type { StreamResponse, Transport } from "@connectrpc/connect";
import {
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
  type ServerReflectionResponseSchema,
} from "@protoport/gateway/gen/grpc/reflection/v1/reflection_pb.js";

/** A request on the stream, with its case and value. */
export type ReflectionRequest = Extract<ServerReflectionRequest["messageRequest"], { value: string }>;
/** A response on the stream, with its case and value. */
export type ReflectionResponse = ServerReflectionResponse["messageResponse"];

type Method = DescMethodBiDiStreaming<typeof ServerReflectionRequestSchema, typeof ServerReflectionResponseSchema>;
type Opened = StreamResponse<typeof ServerReflectionRequestSchema, typeof ServerReflectionResponseSchema>;

/** Maximum requests sent before their responses are read, so that flow control cannot block both sides. */
const concurrentRequestsMax = 100;

/** A server reflection call. Responses arrive in request order. */
export class ReflectionStream {
  readonly #unsent: ReflectionRequest[] = [];
  readonly #opened: Promise<Opened>;
  #responses: AsyncIterator<ServerReflectionResponse> | undefined;
  #wake: (() => void) | undefined;

  constructor(transport: Transport, method: Method, header: Readonly<Record<string, string>>, signal: AbortSignal) {
    this.#opened = transport.stream(method, signal, undefined, header, this.#requests());
    // `send` handles the rejection. Without this handler, a rejection before `send` would be reported as unhandled.
    this.#opened.catch(() => undefined);
  }

  /**
   * Sends requests, and resolves to one response per request.
   *
   * @throws ConnectError if the call fails; Error if the server ends the stream before all responses
   */
  async send(requests: readonly ReflectionRequest[]): Promise<readonly ReflectionResponse[]> {
    const responses: ReflectionResponse[] = [];
    for (let at = 0; at < requests.length; at += concurrentRequestsMax) {
      const batch = requests.slice(at, at + concurrentRequestsMax);
      this.#unsent.push(...batch);
      this.#wake?.();
      // Awaited after the requests are sent, because a server may send its header only with the first response.
      this.#responses ??= (await this.#opened).message[Symbol.asyncIterator]();
      for (const _ of batch) responses.push(await this.#next(this.#responses));
    }
    return responses;
  }

  async #next(responses: AsyncIterator<ServerReflectionResponse>): Promise<ReflectionResponse> {
    const { done, value } = await responses.next();
    if (done === true) throw new Error("server reflection ended before responding to all requests");
    return value.messageResponse;
  }

  /** Closes the stream and discards the remaining responses. */
  close(): void {
    this.#responses?.return?.().catch(() => undefined);
  }

  async *#requests(): AsyncGenerator<ServerReflectionRequest> {
    for (;;) {
      const messageRequest = this.#unsent.shift();
      if (messageRequest !== undefined) yield create(ServerReflectionRequestSchema, { messageRequest });
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
