import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { create } from "@bufbuild/protobuf";
import { type Client, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport, type GrpcTransport } from "../../../src/client/index.ts";
import { KitchenSink, SinkSchema, type Sink } from "../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";

/** The outcome of a call: the response to its own message, the response to another one, an error, or no result. */
export type Outcome = "right" | "wrong" | "error" | "lost";

/** Timeout of a call in milliseconds. */
export const deadlineMs = 2_000;

/** Milliseconds without a result after which a call counts as lost: the deadline, plus time for a busy machine. */
const lostAfterMs = deadlineMs + 28_000;

/** Makes calls with different messages, alternately REST and gRPC, and checks the responses. */
export class Callers implements AsyncDisposable {
  readonly #url: string;
  // fetch is not used, because it takes twice the CPU time.
  readonly #agent = new Agent({ keepAlive: true });
  readonly #transport: GrpcTransport;
  readonly #client: Client<typeof KitchenSink>;

  constructor(baseUrl: string) {
    this.#url = `${baseUrl}/v1/sinks`;
    this.#transport = createGrpcTransport({ baseUrl, connections: 4, retry: "off" });
    this.#client = createClient(KitchenSink, this.#transport);
  }

  /** Makes a call; never rejects. @param number - selects its message and protocol */
  call(number: number): Promise<Outcome> {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const timer = setTimeout(() => resolve("lost"), lostAfterMs);
    const made = number % 2 === 0 ? this.#rest(number) : this.#grpc(number);
    return Promise.race([made, promise]).finally(() => clearTimeout(timer));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    await this.#transport[Symbol.asyncDispose]();
  }

  async #rest(number: number): Promise<Outcome> {
    const { fInt32, fString } = messageOf(number);
    const headers = { "content-type": "application/json", "x-server-timeout": String(deadlineMs / 1000) };
    const body = JSON.stringify({ fInt32, fString });
    try {
      const sent = request(this.#url, { agent: this.#agent, method: "POST", headers });
      // An error after the response has begun; `text` reports it.
      sent.on("error", () => undefined).end(body);
      const [response]: IncomingMessage[] = await once(sent, "response");
      const received = response && (await text(response));
      if (response?.statusCode !== 200) return "error";
      return received === JSON.stringify({ rpc: "Create", sink: { fInt32, fString } }) ? "right" : "wrong";
    } catch {
      return "error";
    }
  }

  async #grpc(number: number): Promise<Outcome> {
    const sent = messageOf(number);
    try {
      const { sink } = await this.#client.create(sent, { timeoutMs: deadlineMs });
      return sink?.fInt32 === sent.fInt32 && sink.fString === sent.fString ? "right" : "wrong";
    } catch (error) {
      return error instanceof ConnectError ? "error" : "wrong";
    }
  }
}

/** Returns the unique message of a call. Most have a few bytes; every hundredth is larger than a window. */
function messageOf(number: number): Sink {
  const length = number % 100 === 0 ? 100_000 : number % 997;
  return create(SinkSchema, { fInt32: number, fString: `${number}.`.repeat(1 + Math.floor(length / 8)) });
}
