import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { create } from "@bufbuild/protobuf";
import { type Client, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport, type GrpcTransport } from "../../../src/client/index.ts";
import { KitchenSink, SinkSchema, type Sink } from "../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";

/** How a call ended: with the caller's own message, with another one, with an error, or with nothing at all. */
export type Outcome = "right" | "wrong" | "error" | "lost";

/** Milliseconds that the proxy may take. */
export const deadlineMs = 2_000;

/** Milliseconds without any answer after which a call is lost: the deadline, and what a busy machine adds to it. */
const lostAfterMs = deadlineMs + 28_000;

/** Makes calls whose messages differ, of REST and of gRPC by turns, and judges the answers. */
export class Callers implements AsyncDisposable {
  readonly #url: string;
  // Not fetch, which takes twice the time, and there may be little of it.
  readonly #agent = new Agent({ keepAlive: true });
  readonly #transport: GrpcTransport;
  readonly #client: Client<typeof KitchenSink>;

  constructor(baseUrl: string) {
    this.#url = `${baseUrl}/v1/sinks`;
    this.#transport = createGrpcTransport({ baseUrl, connections: 4, retry: "off" });
    this.#client = createClient(KitchenSink, this.#transport);
  }

  /** Makes the call of a number; never rejects. */
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
      // One after the answer has begun, which tells of it itself.
      sent.on("error", () => undefined).end(body);
      const [answer]: IncomingMessage[] = await once(sent, "response");
      const answered = answer && (await text(answer));
      if (answer?.statusCode !== 200) return "error";
      return answered === JSON.stringify({ rpc: "Create", sink: { fInt32, fString } }) ? "right" : "wrong";
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

/** The message of a call, which no other call has: some bytes, and for each hundredth more than a window. */
function messageOf(number: number): Sink {
  const length = number % 100 === 0 ? 100_000 : number % 997;
  return create(SinkSchema, { fInt32: number, fString: `${number}.`.repeat(1 + Math.floor(length / 8)) });
}
