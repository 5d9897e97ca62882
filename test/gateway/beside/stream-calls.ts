import { ConnectError, type CallOptions, type Client } from "@connectrpc/connect";
import { framing } from "../../support/carriers/exchange.ts";
import { waitLimitMs } from "../../support/deadline.ts";
import { GreenhouseService, type Reading } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";

/** What a client sees of a call: its messages in order, its fields, and how it ended. */
export interface Transcript {
  readonly messages: readonly unknown[];
  readonly header: Readonly<Record<string, string>>;
  readonly trailer: Readonly<Record<string, string>>;
  readonly error: unknown;
}

/** One call of the table. */
export interface StreamCallRow {
  readonly name: string;
  /** Whether the answer begins before the request has ended, which HTTP/1.1 cannot carry. */
  readonly bidi?: boolean;
  readonly call: (client: GreenhouseClient, options: CallOptions) => AsyncIterable<unknown>;
  /** How many messages come before the client gives it up. */
  readonly givenUpAfter?: number;
}

type GreenhouseClient = Client<typeof GreenhouseService>;

const readings = (...sensors: readonly string[]): AsyncIterable<Pick<Reading, "sensor" | "degreesCelsius">> =>
  // The client of Connect wants an asynchronous iterable; these are at hand.
  (async function* () {
    for (const sensor of sensors) yield { sensor, degreesCelsius: 18 };
  })();

const watch = (sensor: string, count: number): StreamCallRow["call"] => {
  return (client, options) => client.watchReadings({ sensor, count }, options);
};

const recorded = (...sensors: readonly string[]): StreamCallRow["call"] => {
  return async function* (client, options) {
    yield await client.recordReadings(readings(...sensors), options);
  };
};

const controlled = (...sensors: readonly string[]): StreamCallRow["call"] => {
  return (client, options) => client.controlClimate(readings(...sensors), options);
};

/** Every streaming call that is made to both servers, and a few unary ones through the same client. */
export const streamCallTable: readonly StreamCallRow[] = [
  { name: "a unary call", call: unary("tell more") },
  { name: "a unary call that fails", call: unary("fail: 5: no water") },
  { name: "a unary call that is given up", call: unary("wait"), givenUpAfter: 0 },
  { name: "a stream of answers", call: watch("roof", 3) },
  { name: "a stream of no answers", call: watch("roof", 0) },
  { name: "a stream of answers with fields of its own", call: watch("tell more", 2) },
  { name: "a stream that fails at once", call: watch("fail: 5: no sensor", 0) },
  { name: "a stream that fails after some answers", call: watch("fail: 14: wind", 2) },
  { name: "a stream that breaks after some answers", call: watch("break", 2) },
  { name: "a stream that is given up", call: watch("wait", 1), givenUpAfter: 1 },
  { name: "a stream of requests", call: recorded("a", "b", "c") },
  { name: "a stream of no requests", call: recorded() },
  { name: "a stream of requests with fields of its own", call: recorded("tell more") },
  { name: "a stream of requests that fails on the way", call: recorded("a", "fail: 9: frost", "c") },
  { name: "a stream of requests that breaks on the way", call: recorded("a", "break") },
  { name: "a dialogue", call: controlled("a", "b", "c"), bidi: true },
  { name: "a dialogue of nothing", call: controlled(), bidi: true },
  { name: "a dialogue that fails", call: controlled("a", "fail: 3: no such sensor", "c"), bidi: true },
  { name: "a dialogue that is given up", call: controlled("a", "wait"), bidi: true, givenUpAfter: 1 },
];

/** Makes a call and writes down what the client sees. */
export async function transcribe(row: StreamCallRow, client: GreenhouseClient): Promise<Transcript> {
  if (row.givenUpAfter === undefined) return await transcribeOnce(row, client);
  for (let timeoutMs = 100; ; timeoutMs *= 10) {
    const transcript = await transcribeOnce(row, client, timeoutMs);
    // A busy machine may need longer for the messages.
    if (transcript.messages.length === row.givenUpAfter || timeoutMs >= waitLimitMs) return transcript;
  }
}

async function transcribeOnce(row: StreamCallRow, client: GreenhouseClient, timeoutMs?: number): Promise<Transcript> {
  const messages: unknown[] = [];
  let header = {};
  let trailer = {};
  let error: unknown;
  const options: CallOptions = {
    headers: { "x-custom": "one", "x-custom-bin": "AAECAw" },
    onHeader: (headers) => (header = toRecord(headers)),
    onTrailer: (headers) => (trailer = toRecord(headers)),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
  try {
    for await (const message of row.call(client, options)) messages.push(message);
  } catch (reason) {
    const { code, rawMessage, metadata, details } = ConnectError.from(reason);
    error = { code, rawMessage, metadata: toRecord(metadata), details };
  }
  return { messages, header, trailer, error };
}

function unary(note: string): StreamCallRow["call"] {
  return async function* (client, options) {
    yield await client.waterBed({ bed: 9_007_199_254_740_993n, liters: 3, note }, options);
  };
}

function toRecord(headers: Headers): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => !framing.has(name) && !name.startsWith(":")));
}
