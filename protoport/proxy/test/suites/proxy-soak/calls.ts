import { createHash } from "node:crypto";
import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { buffer } from "node:stream/consumers";
import { create } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport, type GrpcTransport } from "../../../src/client/index.ts";
import { FileService, KitchenSink, type Sink, SinkSchema } from "@protoport/testing/proxy";
import { contentOf, piecesOf } from "./content.ts";

/** A call's outcome: the response to its own message, the response to another one, an error, or no result. */
export type Outcome = "right" | "wrong" | "error" | "lost";

export const deadlineMs = 2_000;
/** Milliseconds without a result after which a call counts as lost. Adds time for a busy machine to the deadline. */
const lostAfterMs = deadlineMs + 28_000;

/** How many different kinds of calls are made in turn. */
const turns = 20;

/** Makes calls with different messages, as REST and gRPC, and checks the responses. */
export class Callers implements AsyncDisposable {
  readonly #baseUrl: string;
  // fetch is not used, because it takes twice the CPU time.
  readonly #agent = new Agent({ keepAlive: true });
  readonly #transport: GrpcTransport;
  readonly #sinks: Client<typeof KitchenSink>;
  readonly #files: Client<typeof FileService>;

  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl;
    this.#transport = createGrpcTransport({ baseUrl, connections: 4, retry: "off" });
    this.#sinks = createClient(KitchenSink, this.#transport);
    this.#files = createClient(FileService, this.#transport);
  }

  /** Makes a call. Never rejects. @param number - selects its message and protocol */
  call(number: number): Promise<Outcome> {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const timer = setTimeout(() => resolve("lost"), lostAfterMs);
    const made = this.#make(number).then(
      (isRight): Outcome => (isRight ? "right" : "wrong"),
      (): Outcome => "error",
    );
    return Promise.race([made, promise]).finally(() => clearTimeout(timer));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    await this.#transport[Symbol.asyncDispose]();
  }

  /** Makes a call, and returns whether the response is right. Rejects if the call failed. */
  #make(number: number): Promise<boolean> {
    switch (number % turns) {
      case 0:
        return this.#upload(number);
      case 1:
        return this.#download(number);
      case 2:
        return this.#restUpload(number);
      case 3:
        return this.#restDownload(number);
      default:
        return number % 2 === 0 ? this.#restUnary(number) : this.#unary(number);
    }
  }

  async #unary(number: number): Promise<boolean> {
    const sent = messageOf(number);
    const { sink } = await this.#sinks.create(sent, { timeoutMs: deadlineMs });
    return sink?.fInt32 === sent.fInt32 && sink.fString === sent.fString;
  }

  async #upload(number: number): Promise<boolean> {
    const content = contentOf(number);
    const requests = async function* () {
      for (const data of piecesOf(content)) yield { name: String(number), file: { data } };
    };
    const { name, note } = await this.#files.upload(requests(), { timeoutMs: deadlineMs });
    return name === String(number) && note === digestOf(content);
  }

  async #download(number: number): Promise<boolean> {
    const pieces: Uint8Array[] = [];
    const responses = this.#files.download({ name: String(number) }, { timeoutMs: deadlineMs });
    for await (const { data } of responses) pieces.push(data);
    return Buffer.concat(pieces).equals(contentOf(number));
  }

  async #restUnary(number: number): Promise<boolean> {
    const { fInt32, fString } = messageOf(number);
    const response = await this.#rest("POST", "/v1/sinks", JSON.stringify({ fInt32, fString }));
    return response.toString() === JSON.stringify({ rpc: "Create", sink: { fInt32, fString } });
  }

  async #restUpload(number: number): Promise<boolean> {
    const content = contentOf(number);
    const response = await this.#rest("PUT", `/uploads/${number}`, content);
    return response.toString() === JSON.stringify({ name: String(number), note: digestOf(content) });
  }

  async #restDownload(number: number): Promise<boolean> {
    return (await this.#rest("GET", `/downloads/${number}`)).equals(contentOf(number));
  }

  async #rest(method: string, path: string, body?: string | Buffer): Promise<Buffer> {
    const headers = { "content-type": "application/json", "x-server-timeout": String(deadlineMs / 1000) };
    const sent = request(this.#baseUrl + path, { agent: this.#agent, method, headers });
    // `buffer` reports an error after the response has begun.
    sent.on("error", () => undefined).end(body);
    const [response]: IncomingMessage[] = await once(sent, "response");
    if (response === undefined) throw new Error("no response");
    const received = await buffer(response);
    if (response.statusCode !== 200) throw new Error(`status ${String(response.statusCode)}`);
    return received;
  }
}

const digestOf = (content: Buffer): string => createHash("sha256").update(content).digest("hex");

/** Returns a call's unique message. Most have a few bytes, and every 25th is larger than a window. */
function messageOf(number: number): Sink {
  const length = number % 50 === 4 || number % 50 === 5 ? 100_000 : number % 997;
  return create(SinkSchema, { fInt32: number, fString: `${number}.`.repeat(1 + Math.floor(length / 8)) });
}
