import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { HpackDecoder } from "../../src/engine/http2/hpack/decoder.ts";
// oxfmt-ignore
import { type Address, dataFrame, encodeEnvelope, type Field, frameFlag, frameType, headersFrame, type Http2Server,
  http2Servers, openFrames, openHttp1, rowsFor, shared, startGreenhouse, waterBedProcedure } from "@protoport/testing";

// Requests may have trailer fields. Neither HandlerContext nor the request in Connect's protocol handlers can carry
// them, and they arrive after the header has decided everything about the call. So they are ignored, and never change a
// call.

const recordReadings = "/greenhouse.v1.GreenhouseService/RecordReadings";
const key: Field = ["x-key", "k"];
type Call = { readonly name: string; readonly path: string; readonly header: readonly Field[]; readonly body: Buffer };
const jsonBody = Buffer.from('{"note":"thanks"}');
const calls: readonly Call[] = [
  { name: "REST", path: "/beds/7:water", header: [["content-type", "application/json"]], body: jsonBody },
  { name: "Connect", path: waterBedProcedure, header: [["content-type", "application/json"]], body: jsonBody },
  ...["grpc", "grpc-web"].flatMap((protocol): Call[] => {
    const header: Field[] = [["content-type", `application/${protocol}+json`]];
    const body = encodeEnvelope(0, jsonBody);
    const readings = Buffer.concat([1, 2].map(() => encodeEnvelope(0, Buffer.from('{"sensor":"roof"}'))));
    return [
      { name: protocol, path: waterBedProcedure, header, body },
      { name: `${protocol} streams`, path: recordReadings, header, body: readings },
    ];
  }),
];

// oxfmt-ignore
const trailers: readonly { readonly name: string; readonly fields: readonly Field[] }[] = [
  { name: "a field that is also in the header", fields: [["x-custom", "trailer"]] },
  { name: "a field that is not in the header", fields: [["x-more", "trailer"]] },
  { name: "a deadline", fields: [["grpc-timeout", "1n"], ["connect-timeout-ms", "0"]] },
  { name: "a content type", fields: [["content-type", "text/plain"]] },
  { name: "an encoding", fields: [["grpc-encoding", "gzip"], ["content-encoding", "gzip"]] },
  { name: "a status", fields: [["grpc-status", "13"]] },
];

const rows = calls.flatMap((call) => trailers.map((trailer) => ({ call, trailer })));

/** A response, and its call's record. */
type Outcome = { readonly fields: readonly string[]; readonly body: string; readonly records: readonly unknown[] };
type Send = (address: Address, call: Call, trailer: readonly Field[]) => Promise<readonly [Outcome["fields"], Buffer]>;

const transports: readonly { readonly name: string; readonly http2: Http2Server; readonly send: Send }[] = [
  { name: "HTTP/1.1", http2: "listening", send: sendOverHttp1 },
  ...http2Servers.map((http2) => ({ name: `HTTP/2 ${http2}`, http2, send: sendOverHttp2 })),
];

describe.each(transports)("a request trailer over $name", (transport) => {
  let records: unknown[] = [];
  const see = ({ requestHeader, timeoutMs }: HandlerContext): void => {
    records.push(
      [...requestHeader].filter(([name]) => name !== "host"),
      timeoutMs() !== undefined,
    );
  };
  const greenhouse = shared(
    async () =>
      await startGreenhouse(
        {
          waterBed: ({ note }, context) => (see(context), { note }),
          recordReadings: async (readings, context) => {
            let count = 0;
            for await (const _ of readings) count += 1;
            see(context);
            return { count };
          },
        },
        {
          admit: ({ header }) => {
            if (header.get(key[0]) !== key[1]) throw new ConnectError("no key", Code.Unauthenticated);
          },
        },
        { http2: transport.http2 },
      ),
  );
  const outcomeOf = async (call: Call, trailer: readonly Field[]): Promise<Outcome> => {
    records = [];
    const [fields, body] = await transport.send(greenhouse.address, call, trailer);
    const undated = fields.filter((_, i, all) => all[i - (i % 2)] !== "date");
    return { fields: undated, body: body.toString("latin1"), records };
  };
  const withKey = (call: Call): Call => ({ ...call, header: [...call.header, key, ["x-custom", "header"]] });

  test.each(rowsFor(transport, transports, rows))(
    "with $trailer.name does not change the response to $call.name",
    async ({ call, trailer }) => {
      const want = await outcomeOf(withKey(call), [["x-nothing", "of note"]]);
      expect(want.records).toHaveLength(2);
      expect(JSON.stringify(want)).not.toContain("of note");
      expect(await outcomeOf(withKey(call), trailer.fields)).toStrictEqual(want);
    },
  );

  test.each(calls)("sent with $name does not authenticate the caller", async (call) => {
    const outcome = await outcomeOf(call, [key]);
    expect([outcome.records, outcome]).toStrictEqual([[], await outcomeOf(call, [["x-nothing", "of note"]])]);
  });
});

async function sendOverHttp1(address: Address, call: Call, trailer: readonly Field[]): ReturnType<Send> {
  using connection = await openHttp1(address);
  const fields: readonly Field[] = [["host", "x"], ...call.header, ["transfer-encoding", "chunked"]];
  connection.write(`POST ${call.path} HTTP/1.1\r\n${lines(fields)}\r\n${call.body.byteLength.toString(16)}\r\n`);
  connection.socket.write(call.body);
  connection.write(`\r\n0\r\n${lines(trailer)}\r\n`);
  const { httpStatus, header, trailer: answered, body } = await connection.readResponse();
  const all = [[":status", String(httpStatus)] as const, ...header, ...answered];
  return [all.flatMap(([name, value]) => [name.toLowerCase(), value]), body];
}

function lines(fields: readonly Field[]): string {
  return fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
}

async function sendOverHttp2(address: Address, call: Call, trailer: readonly Field[]): ReturnType<Send> {
  using connection = await openFrames(address);
  const pseudo = Object.entries({ ":method": "POST", ":path": call.path, ":scheme": "http", ":authority": "x" });
  connection.send(headersFrame(1, [...pseudo, ...call.header]), dataFrame(1, call.body));
  connection.send(headersFrame(1, trailer, frameFlag.endStream));
  const decoder = new HpackDecoder(100_000);
  const fields: string[] = [];
  const body: Buffer[] = [];
  const end = await connection.readUntil(({ type, flags, streamId, payload }) => {
    if (streamId !== 1 || type === frameType.windowUpdate) return false;
    if (type === frameType.data) body.push(payload);
    if (type === frameType.headers) fields.push(...decoder.decode(payload, 0, payload.byteLength).fields);
    return type === frameType.resetStream || (flags & frameFlag.endStream) !== 0;
  });
  if (end === undefined || end.type === frameType.resetStream) throw new Error("the call was not answered");
  return [fields, Buffer.concat(body)];
}
