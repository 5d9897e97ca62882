import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import type { GenericDefinition } from "../src/nice-grpc.ts";
import { includeDirs } from "./garden.ts";
import { generateTsProto } from "./generate-ts-proto.ts";
import type { CallOutcome, ClientCall, Message } from "./grpc-js-client.ts";

// nice-grpc handlers. Each case has the same outcome with nice-grpc's own server and with a gateway.

interface Metadata {
  set(key: string, value: string | Uint8Array | (string | Uint8Array)[]): unknown;
  append(key: string, value: string | Uint8Array): unknown;
  delete(key: string): void;
  get(key: string): string | Uint8Array | undefined;
  getAll(key: string): (string | Uint8Array)[];
  has(key: string): boolean;
  [Symbol.iterator](): Iterator<[string, (string | Uint8Array)[]]>;
}

export interface Context {
  readonly metadata: Metadata;
  readonly header: Metadata;
  readonly trailer: Metadata;
  readonly peer: string;
  readonly signal: AbortSignal;
  readonly sendHeader: () => void;
}

export type ServerErrorClass = new (code: status, details: string) => Error;

export interface NiceCase {
  readonly name: string;
  readonly handlers: (ServerError: ServerErrorClass) => object;
  readonly call: ClientCall;
  readonly outcome: Partial<Record<keyof CallOutcome, unknown>>;
  readonly deviation?: Partial<CallOutcome>;
}

/** The garden's definition for nice-grpc. Dispose of it when the definition is no longer used. */
export interface NiceGarden extends Disposable {
  readonly definition: GenericDefinition;
}

export async function generateNiceGarden(): Promise<NiceGarden> {
  const options = ["outputServices=nice-grpc", "outputServices=generic-definitions", "forceLong=string"];
  const code = generateTsProto(includeDirs, options);
  const generated: { GardenDefinition: GenericDefinition } = await import(join(code.folder, "garden/v1/garden.ts"));
  return { definition: generated.GardenDefinition, [Symbol.dispose]: () => code[Symbol.dispose]() };
}

const say = (speciesName: unknown): Message => ({ speciesName: JSON.stringify(speciesName) });
const three: readonly Message[] = [1, 2, 3].map((treeId) => ({ treeId }));
const binary = Buffer.from([0, 255, 1]);
const notFound = { code: status.NOT_FOUND, details: "no such tree" };
const idsOf = (...ids: readonly number[]): unknown => ids.map((id) => ({ treeId: String(id) }));

function setMetadata({ header, trailer }: Context): void {
  header.set("x-head", ["1", "2"]);
  header.append("x-head", "3");
  header.set("x-head-bin", new Uint8Array(binary));
  trailer.set("x-tail", "1");
  trailer.set("x-gone", "1");
  trailer.delete("x-gone");
}
const metadataOutcome = { header: { "x-head": ["1, 2, 3"], "x-head-bin": [binary] }, trailer: { "x-tail": ["1"] } };

// oxfmt-ignore
export const niceCases: readonly NiceCase[] = [
  { name: "a method receives the request and metadata, and may return a partial message", handlers: () => ({ getTree: async (request: Message, { metadata }: Context) =>
        say([
          request["treeId"],
          metadata.get("x-text"),
          Buffer.from(metadata.get("x-bytes-bin") ?? "").toString("hex"),
          metadata.getAll("x-text"),
          metadata.getAll("X-Bytes-BIN").length,
          metadata.has("x-none"),
          [...metadata].map(([key]) => key).toSorted(),
        ]),
    }), call: { method: "GetTree", requests: [{ treeId: 7 }],
      metadata: [["x-text", "a"], ["x-text", "b"], ["x-bytes-bin", binary], ["x-bytes-bin", binary]] },
    outcome: { code: status.OK,
      messages: [say(["7", "a, b", "00ff01", ["a, b"], 2, false, ["user-agent", "x-bytes-bin", "x-text"]])] } },
  { name: "a method sets header and trailer", handlers: () => ({ getTree: async (_request: Message, context: Context) => {
        setMetadata(context);
        return say(1);
      },
    }), call: { method: "GetTree" }, outcome: { code: status.OK, messages: [say(1)], ...metadataOutcome } },
  { name: "a ServerError is sent as the status, with header and trailer", handlers: (ServerError) => ({ getTree: async (_request: Message, context: Context) => {
        setMetadata(context);
        throw new ServerError(notFound.code, notFound.details);
      },
    }), call: { method: "GetTree" }, outcome: { ...notFound, ...metadataOutcome } },
  { name: "an error other than a ServerError is sent as UNKNOWN", handlers: () => ({ getTree: async () => {
        throw Object.assign(new Error("secret"), { code: status.NOT_FOUND });
      },
    }), call: { method: "GetTree" }, outcome: { code: status.UNKNOWN, details: "Unknown server error occurred" },
    deviation: { details: "Unknown error" } },
  { name: "an AbortError is sent as CANCELLED", handlers: () => ({ getTree: async () => {
        throw new DOMException("gone", "AbortError");
      },
    }), call: { method: "GetTree" }, outcome: { code: status.CANCELLED, details: "The operation was cancelled" } },
  { name: "a missing method results in UNIMPLEMENTED", handlers: () => ({ listTrees: async function* () {} }),
    call: { method: "GetTree" }, outcome: { code: status.UNIMPLEMENTED } },
  { name: "a generator sends a stream, with header and trailer", handlers: () => ({ async *listTrees(request: Message, context: Context) {
        setMetadata(context);
        for (const message of three.slice(0, Number(request["pageSize"]))) yield { treeId: String(message["treeId"]) };
        context.header.set("x-late", "1");
      },
    }), call: { method: "ListTrees", requests: [{ pageSize: 2 }] },
    outcome: { code: status.OK, messages: idsOf(1, 2), ...metadataOutcome } },
  { name: "a generator that throws ends the stream after its messages", handlers: (ServerError) => ({ async *listTrees(_request: Message, context: Context) {
        setMetadata(context);
        yield { treeId: "1" };
        throw new ServerError(notFound.code, notFound.details);
      },
    }), call: { method: "ListTrees" }, outcome: { ...notFound, messages: idsOf(1), ...metadataOutcome } },
  { name: "a client stream is passed as an async iterable", handlers: () => ({ async addTrees(requests: AsyncIterable<Message>) {
        let treeCount = 0;
        for await (const { treeId } of requests) treeCount += Number(treeId);
        return { treeCount };
      },
    }), call: { method: "AddTrees", requests: three }, outcome: { code: status.OK, messages: [{ treeCount: 6 }] } },
  { name: "a handler may respond before it has read the complete client stream", handlers: () => ({ async addTrees(requests: AsyncIterable<Message>) {
        for await (const { treeId } of requests) return { treeCount: Number(treeId) };
        return {};
      },
    }), call: { method: "AddTrees", requests: three }, outcome: { code: status.OK, messages: [{ treeCount: 1 }] } },
  { name: "a bidirectional stream may stop reading and still respond", handlers: () => ({ async *tradeTrees(requests: AsyncIterable<Message>, { trailer }: Context) {
        for await (const { treeId } of requests) {
          yield { treeId };
          break;
        }
        trailer.set("x-tail", "1");
        yield { treeId: "4" };
      },
    }), call: { method: "TradeTrees", requests: three },
    outcome: { code: status.OK, messages: idsOf(1, 4), trailer: { "x-tail": ["1"] } } },
  { name: "a bidirectional stream may fail after it stopped reading", handlers: (ServerError) => ({ async *tradeTrees(requests: AsyncIterable<Message>) {
        for await (const { treeId } of requests) {
          yield { treeId };
          throw new ServerError(notFound.code, notFound.details);
        }
      },
    }), call: { method: "TradeTrees", requests: three, keepsOpen: true },
    outcome: { ...notFound, messages: idsOf(1) } },
  { name: "a bidirectional stream can respond to each message and after the last one", handlers: () => ({ async *tradeTrees(requests: AsyncIterable<Message>) {
        for await (const { treeId } of requests) yield { treeId };
        yield { treeId: "4" };
      },
    }), call: { method: "TradeTrees", requests: three }, outcome: { code: status.OK, messages: idsOf(1, 2, 3, 4) } },
  { name: "sendHeader sends the header before the first message", handlers: () => ({ async *tradeTrees(requests: AsyncIterable<Message>, { header, sendHeader, peer }: Context) {
        header.set("x-head", String(/^127\.0\.0\.1:\d+$/.test(peer)));
        sendHeader();
        header.set("x-head", "late");
        for await (const { treeId } of requests) yield { treeId };
      },
    }), call: { method: "TradeTrees", requests: three },
    outcome: { code: status.OK, messages: idsOf(1, 2, 3), header: { "x-head": ["true"] } } },
  { name: "a generator is paused while its client reads slowly", handlers: () => ({ async *listTrees() {
        for (let sent = 0; sent < 500; sent += 1) yield { photoBytes: Buffer.alloc(8 * 1024) };
      },
    }), call: { method: "ListTrees" }, outcome: { code: status.OK, messages: { length: 500 } } },
];
