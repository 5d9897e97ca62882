import { once } from "node:events";
import type { Duplex } from "node:stream";
import { Metadata, status } from "@grpc/grpc-js";
import type {
  handleUnaryCall,
  sendUnaryData,
  ServerDuplexStream,
  ServerReadableStream,
  ServerUnaryCall,
  ServerWritableStream,
  UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { expect } from "vitest";
import type { CallOutcome, ClientCall, Message } from "./grpc-js-client.ts";

export type Unary = ServerUnaryCall<Message, Message>;
export type Readable = ServerReadableStream<Message, Message>;
export type Writable = ServerWritableStream<Message, Message>;
export type DuplexCall = ServerDuplexStream<Message, Message>;
export type Callback = sendUnaryData<Message>;

/** The members that grpc-js calls have in addition to stream members. The compiler finds the missing ones. */
type CallMember = Exclude<
  | keyof ServerUnaryCall<unknown, unknown>
  | keyof ServerReadableStream<unknown, unknown>
  | keyof ServerWritableStream<unknown, unknown>
  | keyof ServerDuplexStream<unknown, unknown>,
  keyof Duplex
>;
/** What handlers use from streams, and the callback. */
type StreamMember = "callback" | "data" | "drain" | "emit" | "end" | "for await" | "write";
export type Member = CallMember | StreamMember;

// oxfmt-ignore
export const members: Readonly<Record<Member, true>> = { request: true, metadata: true, sendMetadata: true,
  cancelled: true, getDeadline: true, getPath: true, getHost: true, getPeer: true, getAuthContext: true,
  getMetricsRecorder: true, callback: true, data: true, drain: true, emit: true, end: true, "for await": true,
  write: true };

/** A handler, a call, and its outcome, which is the same with grpc-js's server and with a gateway. */
export interface Case {
  readonly name: string;
  readonly shows: readonly Member[];
  readonly handlers: UntypedServiceImplementation;
  readonly call: ClientCall;
  readonly outcome: Partial<CallOutcome>;
  readonly deviation?: Partial<CallOutcome>;
}

/** A message with a value as JSON. */
export const say = (speciesName: unknown): Message => ({ speciesName: JSON.stringify(speciesName) });
const said = (speciesName: unknown): readonly Message[] => [expect.objectContaining(say(speciesName))];
const fields = (...entries: readonly (readonly [string, string | Buffer])[]): Metadata => {
  const metadata = new Metadata();
  for (const [key, value] of entries) metadata.add(key, value);
  return metadata;
};
export const unary = (handler: (call: Unary, callback: Callback) => unknown): UntypedServiceImplementation => ({
  getTree: handler as handleUnaryCall<Message, Message>,
});
/** An async function as a handler, whose promise grpc-js's types do not allow. */
const asynchronous =
  <A extends readonly unknown[]>(handler: (...args: A) => Promise<void>) =>
  (...args: A): void =>
    void handler(...args);
const messagesOf = (call: Readable): AsyncIterable<Message> => call;
const binary = Buffer.from([0, 255, 1]);
const notFound = { code: status.NOT_FOUND, details: "no such tree" };

// oxfmt-ignore
const unaryCases: readonly Omit<Case, "call">[] = [
  { name: "call.request is the request message", shows: ["request"],
    handlers: unary((call, callback) => callback(null, say(call.request))),
    outcome: { code: status.OK, messages: said({ bedName: "beds/1", treeId: "7" }) } },
  { name: "call.metadata contains text, repeated and binary values, without gRPC's fields", shows: ["metadata"],
    handlers: unary((call, callback) => {
      const names = Object.keys(call.metadata.getMap()).toSorted();
      callback(null, say([names, call.metadata.get("x-text"), call.metadata.get("x-bytes-bin")]));
    }), outcome: { messages: said([["user-agent", "x-bytes-bin", "x-text"], ["a, b"], [binary, Buffer.from("b")]]) } },
  { name: "sendMetadata sends header metadata only once", shows: ["sendMetadata"], handlers: unary((call, callback) => {
      call.sendMetadata(fields(["x-head", "1"], ["x-head-bin", binary]));
      call.sendMetadata(fields(["x-late", "1"]));
      callback(null, {});
    }), outcome: { header: { "x-head": ["1"], "x-head-bin": [binary] } } },
  { name: "the callback's third argument is sent as the trailer", shows: ["callback"],
    handlers: unary((_call, callback) => callback(null, say(1), fields(["x-tail", "1"], ["x-tail-bin", binary]))),
    outcome: { messages: said(1), trailer: { "x-tail": ["1"], "x-tail-bin": [binary] } } },
  { name: "an error's code is sent as the status, and its metadata as the trailer", shows: ["callback"],
    handlers: unary((_call, callback) => callback({ ...notFound, metadata: fields(["x-why", "frost"]) })),
    outcome: { ...notFound, messages: [], trailer: { "x-why": ["frost"] } } },
  { name: "an error's metadata can delay the client's retries", shows: ["callback"],
    handlers: unary((_call, callback) => callback({ ...notFound, metadata: fields(["grpc-retry-pushback-ms", "50"]) })),
    outcome: { ...notFound, trailer: { "grpc-retry-pushback-ms": ["50"] } } },
  { name: "an error without details sends its message as details", shows: ["callback"],
    handlers: unary((_call, callback) => callback(Object.assign(new Error("frozen"), { code: status.ABORTED }))),
    outcome: { code: status.ABORTED, details: "frozen" } },
  { name: "the callback's trailer replaces the metadata of the error", shows: ["callback"],
    handlers: unary((_call, callback) => callback({ ...notFound, metadata: fields(["x-why", "frost"]) }, null,
      fields(["x-tail", "1"]))), outcome: { ...notFound, trailer: { "x-tail": ["1"] } } },
  { name: "an error without a code is sent as UNKNOWN", shows: ["callback"],
    handlers: unary((_call, callback) => callback(new Error("connect ECONNREFUSED 10.0.0.7:5432"))),
    outcome: { code: status.UNKNOWN, details: "connect ECONNREFUSED 10.0.0.7:5432" },
    deviation: { details: "Unknown error" } },
  { name: "a thrown error is sent as UNKNOWN, even if it has a code", shows: [], handlers: unary(() => {
      throw Object.assign(new Error("secret"), notFound);
    }), outcome: { code: status.UNKNOWN, details: "Unknown error" } },
  { name: 'emit("error") sends the error as the status', shows: ["emit"],
    handlers: unary((call) => call.emit("error", notFound)), outcome: { ...notFound, messages: [] } },
  { name: "a response that cannot be serialized results in INTERNAL", shows: ["callback"],
    handlers: unary((_call, callback) => callback(null, JSON.parse("[]"))),
    outcome: { code: status.INTERNAL, details: "Error serializing response" } },
  { name: "getPath, getHost, cancelled and getAuthContext describe the call",
    shows: ["getPath", "getHost", "cancelled", "getAuthContext"], handlers: unary((call, callback) => {
      const [host, port] = call.getHost().split(":");
      callback(null, say([call.getPath(), host, Number(port) > 0, call.cancelled, call.getAuthContext()]));
    }), outcome: { messages: said(["/garden.v1.Garden/GetTree", "127.0.0.1", true, false, {}]) } },
  { name: "getPeer returns the client's address", shows: ["getPeer"],
    handlers: unary((call, callback) => callback(null, say(/^127\.0\.0\.1:\d+$/.test(call.getPeer())))),
    outcome: { messages: said(true) } },
  { name: "getDeadline returns Infinity without a deadline", shows: ["getDeadline"],
    handlers: unary((call, callback) => callback(null, say(call.getDeadline() === Infinity))),
    outcome: { messages: said(true) } },
  { name: "getMetricsRecorder accepts metrics, which are not sent by default", shows: ["getMetricsRecorder"],
    handlers: unary((call, callback) => {
      const recorder = call.getMetricsRecorder();
      recorder.recordRequestCostMetric("bytes", 1);
      recorder.recordUtilizationMetric("queue", 1);
      recorder.recordNamedMetric("rows", 1);
      recorder.recordCPUUtilizationMetric(1);
      recorder.recordMemoryUtilizationMetric(1);
      recorder.recordApplicationUtilizationMetric(1);
      recorder.recordQpsMetric(1);
      recorder.recordEpsMetric(1);
      callback(null, say(Buffer.isBuffer(recorder.serialize())));
    }), outcome: { messages: said(true), trailer: {} } },
  { name: "a method without a handler results in UNIMPLEMENTED", shows: [], handlers: {},
    outcome: { code: status.UNIMPLEMENTED, details: "The server does not implement the method GetTree" },
    deviation: { details: "The server does not implement the method /garden.v1.Garden/GetTree" } },
];

// oxfmt-ignore
const unaryCall: ClientCall = { method: "GetTree", requests: [{ bedName: "beds/1", treeId: 7 }],
  metadata: [["x-text", "a"], ["x-text", "b"], ["x-bytes-bin", binary], ["x-bytes-bin", Buffer.from("b")]] };
const three: readonly Message[] = [1, 2, 3].map((treeId) => ({ treeId }));
const ids = (messages: readonly Message[]): unknown[] => messages.map(({ treeId }) => treeId);

// oxfmt-ignore
const streamCases: readonly Case[] = [
  { name: "data events deliver the requests of a client stream, and the end event follows", shows: ["data", "end"],
    handlers: { addTrees: (call: Readable, callback: Callback) => {
      const received: Message[] = [];
      call.on("data", (message: Message) => received.push(message));
      call.on("end", () => callback(null, { treeCount: Number(ids(received).join("")) }, fields(["x-tail", "1"])));
    } }, call: { method: "AddTrees", requests: three },
    outcome: { code: status.OK, messages: [{ treeCount: 123 }], trailer: { "x-tail": ["1"] } } },
  { name: "for await reads a client stream, and the callback then responds", shows: ["for await"],
    handlers: { addTrees: asynchronous(async (call: Readable, callback: Callback) => {
      let treeCount = 0;
      for await (const { treeId } of messagesOf(call)) treeCount += Number(treeId);
      callback(null, { treeCount });
    }) }, call: { method: "AddTrees", requests: three }, outcome: { code: status.OK, messages: [{ treeCount: 6 }] } },
  { name: "a client stream can receive its response before it ends", shows: ["callback"],
    handlers: { addTrees: (_call: Readable, callback: Callback) => callback(null, { treeCount: 9 }) },
    call: { method: "AddTrees", requests: three, keepsOpen: true },
    outcome: { code: status.OK, messages: [{ treeCount: 9 }] } },
  { name: "write sends a server stream's message, and end sends its trailer",
    shows: ["write", "end", "sendMetadata", "request"], handlers: { listTrees: (call: Writable) => {
      call.sendMetadata(fields(["x-head", "1"]));
      for (const message of three) call.write(message);
      call.end(fields(["x-tail", String(call.request["pageSize"])]));
    } }, call: { method: "ListTrees", requests: [{ pageSize: 3 }] },
    outcome: { code: status.OK,
      messages: three.map(({ treeId }) => expect.objectContaining({ treeId: String(treeId) })),
      header: { "x-head": ["1"] }, trailer: { "x-tail": ["3"] } } },
  { name: 'emit("error") sends the status of a server stream after its messages', shows: ["emit"],
    handlers: { listTrees: (call: Writable) => {
      call.write(say(1));
      call.emit("error", { ...notFound, metadata: fields(["x-why", "frost"]) });
    } }, call: { method: "ListTrees" }, outcome: { ...notFound, messages: said(1), trailer: { "x-why": ["frost"] } } },
  { name: "a server stream's handler receives no callback argument", shows: [],
    handlers: { listTrees: (call: Writable, callback?: Callback) => call.end(fields(["x-got", typeof callback])) },
    call: { method: "ListTrees" }, outcome: { code: status.OK, trailer: { "x-got": ["undefined"] } } },
  { name: "a server stream can end without messages", shows: ["end"],
    handlers: { listTrees: (call: Writable) => call.end() }, call: { method: "ListTrees" },
    outcome: { code: status.OK, messages: [] } },
  { name: "an exception in a server stream's handler results in UNKNOWN", shows: [], handlers: { listTrees: () => {
      throw new Error("secret");
    } }, call: { method: "ListTrees" }, outcome: { code: status.UNKNOWN, details: "Unknown error" } },
  { name: "a bidirectional stream continues after the client's half-close", shows: ["data", "write", "end"],
    handlers: { tradeTrees: (call: DuplexCall) => {
      call.on("data", (message: Message) => call.write(message));
      call.on("end", () => {
        call.write({ treeId: 4 });
        call.end(fields(["x-tail", "1"]));
      });
    } }, call: { method: "TradeTrees", requests: three },
    outcome: { code: status.OK, messages: ["1", "2", "3", "4"].map((treeId) => expect.objectContaining({ treeId })),
      trailer: { "x-tail": ["1"] } } },
  { name: "a bidirectional stream can end before the client's half-close", shows: ["end"],
    handlers: { tradeTrees: (call: DuplexCall) => call.once("data", () => call.end()) },
    call: { method: "TradeTrees", requests: three, keepsOpen: true }, outcome: { code: status.OK, messages: [] } },
  { name: "call.pipe(call) sends a bidirectional stream's requests back", shows: ["data", "write"],
    handlers: { tradeTrees: (call: DuplexCall & NodeJS.WritableStream) => call.pipe(call) },
    call: { method: "TradeTrees", requests: three },
    outcome: { code: status.OK, messages: [1, 2, 3].map((id) => expect.objectContaining({ treeId: String(id) })) } },
  { name: "sendMetadata sends the header of a stream before its first message", shows: ["sendMetadata"],
    handlers: { tradeTrees: (call: DuplexCall) => {
      call.sendMetadata(fields(["x-head", "1"]));
      call.resume().on("end", () => call.end());
    } }, call: { method: "TradeTrees", requests: [], endsAtHeader: true },
    outcome: { code: status.OK, header: { "x-head": ["1"] } } },
  { name: "write returns false while the client reads slowly, and drain is emitted later", shows: ["write", "drain"],
    handlers: { listTrees: asynchronous(async (call: Writable) => {
      const message = { photoBytes: Buffer.alloc(8 * 1024) };
      let pauses = 0;
      for (let sent = 0; sent < 2000; sent += 1) {
        if (call.write(message)) continue;
        pauses += 1;
        await once(call, "drain");
      }
      call.end(fields(["x-paused", String(pauses > 0)]));
    }) }, call: { method: "ListTrees" },
    outcome: { code: status.OK, messages: expect.objectContaining({ length: 2000 }),
      trailer: { "x-paused": ["true"] } } },
];

export const cases: readonly Case[] = [...unaryCases.map((one) => ({ ...one, call: unaryCall })), ...streamCases];
