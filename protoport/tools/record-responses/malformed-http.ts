import { createGateway } from "../../gateway/src/index.ts";
import { type Address, type Field } from "../../testing/src/http/exchange.ts";
import { openHttp1 } from "../../testing/src/http/http1-connection.ts";
import { Dice } from "../../testing/src/dice.ts";
import { renderHttp1 } from "./http1.ts";
import { Http2Recorder } from "./http2.ts";
import { renderBytes } from "./render.ts";
import { streamingOptions } from "./streams.ts";

/** Number of requests with malformed HTTP that are sent over each HTTP version. */
const requests = 200;

/** Sends requests with malformed HTTP to the gateway's servers. @returns the records, by HTTP version */
export async function recordMalformedHttp(): Promise<Readonly<Record<"http1" | "http2", string>>> {
  const gateway = createGateway({ ...streamingOptions, onFault: () => {} });
  const address = await gateway.listen({ host: "127.0.0.1" });
  const records = { http1: await recordAll(address, recordHttp1), http2: await recordAll(address, recordHttp2) };
  await gateway.close();
  return records;
}

async function recordAll(address: Address, record: (address: Address, dice: Dice) => Promise<string>): Promise<string> {
  const records: string[] = [];
  for (let seed = 0; seed < requests; seed++)
    records.push(`### seed ${seed}\n${await record(address, new Dice(seed))}`);
  return records.join("\n");
}

const validHead = [
  "POST /beds/7:water HTTP/1.1",
  "host: gateway.example",
  "content-type: application/json",
  "content-length: 12",
];
const validBody = '{"liters":3}';

const lines = [
  "content-length: 3",
  "content-length: +3",
  "content-length: 12, 12",
  "transfer-encoding: chunked",
  "transfer-encoding: gzip, chunked",
  "expect: 100-continue",
  "expect: the-moon",
  "host: other.example",
  "host: a b",
  " folded",
  "no colon",
  "space : x",
  ": no name",
  "connection: close",
  "x: \0",
  "x: \x7f",
  `x: ${"y".repeat(17_000)}`,
];

const firstLines = [
  "GET /sensors/roof/reading HTTP/1.1",
  "POST  /beds/7:water HTTP/1.1",
  "POST /beds/7:water HTTP/1.0",
  "POST /beds/7:water HTTP/2.0",
  "POST http://other.example/beds/7:water HTTP/1.1",
  "OPTIONS * HTTP/1.1",
  "CONNECT x:80 HTTP/1.1",
  "post /beds/7:water HTTP/1.1",
  "POST beds HTTP/1.1",
  "POST /beds/7#x HTTP/1.1",
  `GET /${"a".repeat(9000)} HTTP/1.1`,
];

async function recordHttp1(address: Address, dice: Dice): Promise<string> {
  using connection = await openHttp1(address);
  const request = corruptHead(dice);
  // Half-closes the connection, so that the server does not wait for more.
  connection.socket.end(request);
  return `${renderBytes(request)}\n${renderHttp1(await connection.readToEnd())}`;
}

function corruptHead(dice: Dice): Buffer {
  const head = [...validHead];
  for (let remaining = 1 + dice.roll(2); remaining > 0; remaining--) {
    const at = dice.roll(head.length);
    if (at === 0) head[0] = dice.oneOf(firstLines);
    else head.splice(at, dice.roll(2), dice.oneOf(lines));
  }
  const bytes = Buffer.from(`${head.join(dice.roll(12) === 0 ? "\n" : "\r\n")}\r\n\r\n${validBody}`, "latin1");
  if (dice.roll(4) === 0) bytes[dice.roll(bytes.byteLength)] = dice.roll(256);
  return dice.roll(8) === 0 ? bytes.subarray(0, dice.roll(bytes.byteLength)) : bytes;
}

const validFields: readonly Field[] = [
  [":method", "POST"],
  [":path", "/beds/7:water"],
  [":scheme", "http"],
  [":authority", "gateway.example"],
  ["content-type", "application/json"],
  ["content-length", "12"],
];

const fields: readonly Field[] = [
  [":method", "GET"],
  [":method", "CONNECT"],
  [":method", "a b"],
  [":path", ""],
  [":path", "*"],
  [":path", "beds"],
  [":path", "/beds/7#x"],
  [":path", `/${"a".repeat(9000)}`],
  [":scheme", "ftp"],
  [":authority", "a b"],
  [":status", "200"],
  ["host", "other.example"],
  ["content-length", "3"],
  ["content-length", "x"],
  ["connection", "close"],
  ["te", "gzip"],
  ["te", "trailers"],
  ["expect", "the-moon"],
  ["transfer-encoding", "chunked"],
  ["Upper", "x"],
  ["x", "y\0"],
  ["x", " y"],
  ["", "x"],
  ["x", "y".repeat(14_000)],
];

async function recordHttp2(address: Address, dice: Dice): Promise<string> {
  using recorder = new Http2Recorder(address, true);
  const list = [...validFields];
  for (let remaining = 1 + dice.roll(2); remaining > 0; remaining--) {
    const field = dice.oneOf(fields);
    const known = list.findIndex(([name]) => name === field[0]);
    if (known >= 0 && dice.roll(4) > 0) list[known] = field;
    else list.splice(dice.roll(4) === 0 ? dice.roll(list.length) : list.length, 0, field);
  }
  return await recorder.recordFields(list, Buffer.from(validBody));
}
