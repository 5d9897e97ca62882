import { createServer, type ServerHttp2Stream } from "node:http2";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ErrorCode } from "../../../../../src/http/exchange/index.ts";
import type { Address, Field } from "../../../../../../testing/src/http/exchange.ts";
import {
  frameFlag,
  headersFrame,
  openFrames,
  type StreamEnd,
} from "../../../../../../testing/src/http/http2-frames.ts";
import { type LoopbackServer, startOnLoopback } from "../../../../../../testing/src/http/listen-on-loopback.ts";
import { type Engine, startEngine } from "../../../../../../testing/src/http2/http2-engine.ts";
import { answered, getHeader, resetWith } from "../../../../../../testing/src/http2/http2-requests.ts";

// Compares how the gateway's two HTTP/2 servers handle header sections.

let own: Engine;
let node: LoopbackServer;

beforeAll(async () => {
  own = await startEngine({ limits: { resets: 1_000_000 } });
  const server = createServer();
  server.on("session", (session) => session.on("error", () => {}));
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => {}).resume();
    stream.on("end", () => void (stream.destroyed || stream.respond({ ":status": 200 }, { endStream: true })));
  });
  node = await startOnLoopback(server);
});

afterAll(async () => {
  await own[Symbol.asyncDispose]();
  await node[Symbol.asyncDispose]();
});

// Each octet with a meaning, at each position in a header.
const octets = Array.from('\0\x01\t\n\r \x7f\x80\xff!"#%(),/:;<@A[\\^`{|}~az09');
const instead = (name: string, value: string): Field[] =>
  getHeader.map(([known, was]) => [known, known === name ? value : was]);
const withoutAuthority = getHeader.filter(([name]) => name !== ":authority");
const headers: readonly (readonly Field[])[] = [
  ...octets.flatMap((octet): Field[][] => [
    [...getHeader, ["a", `b${octet}c`]],
    [...getHeader, ["a", `${octet}c`]],
    [...getHeader, ["a", `b${octet}`]],
    [...getHeader, [`a${octet}b`, "c"]],
    instead(":method", `A${octet}B`),
    instead(":scheme", `h${octet}t`),
    instead(":path", `/a${octet}b`),
    instead(":authority", `a${octet}b`),
    [...instead(":authority", `a${octet}b`), ["host", `a${octet}b`]],
    [...withoutAuthority, ["host", `a${octet}b`]],
    [...getHeader, ["te", octet]],
    [...getHeader, ["content-length", octet]],
  ]),
  ...["0", "00", "-0", "", "0, 0"].map((value): Field[] => [...getHeader, ["content-length", value]]),
  [...getHeader, ["content-length", "0"], ["content-length", "0"]],
  ...["", "Trailers", "trailers, gzip"].map((value): Field[] => [...getHeader, ["te", value]]),
  ...["*", "?a", "", "http://x/"].map((value) => instead(":path", value)),
  ...["", "gopher"].map((value) => instead(":scheme", value)),
  ...["", "a:b:c", "u@a"].map((value) => instead(":authority", value)),
  [[":method", "OPTIONS"], ...instead(":path", "*").slice(1)],
  [
    [":method", "CONNECT"],
    [":authority", "x:1"],
  ],
  [[":method", "CONNECT"], ...getHeader.slice(1)],
  ...["connection", "proxy-connection", "keep-alive", "upgrade", "transfer-encoding", ":protocol", ":status"].map(
    (name): Field[] => [...getHeader, [name, "x"]],
  ),
  ...getHeader.map((field): Field[] => [...getHeader, field]),
  ...getHeader.map(([absent]): Field[] => getHeader.filter(([name]) => name !== absent)),
  [...getHeader, ["host", "x"], ["host", "x"]],
  [...getHeader, ["host", "y"]],
];

/** Returns why the engine rejects a request that node:http2 accepts. */
function reasonToRefuse(header: readonly Field[]): string | undefined {
  const fields = header.filter(([name]) => !name.startsWith(":"));
  // node:http2 drops the field and serves the request.
  if (fields.some(([name]) => !/^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(name))) return "§8.2.1: a name that is not a token";
  if (fields.some(([, value]) => !/^[\t\x20-\x7e\x80-\xff]*$/.test(value)))
    return "§8.2.1: a control character in a value";
  if (fields.some(([, value]) => /^[\t ]|[\t ]$/.test(value))) return "§8.2.1: white space around a value";
  const hosts = fields.filter(([name]) => name === "host").map(([, value]) => value);
  const authority = header.find(([name]) => name === ":authority")?.[1];
  if (hosts.some((host) => host !== authority)) return "§8.3.1: a Host that is not the authority";
  return undefined;
}

test("a header that only the engine rejects violates RFC 9113", async () => {
  const byOwn = await judge(own.address);
  const byNode = await judge(node.address);
  const differing = headers.filter((_, i) => byOwn[i]?.kind !== byNode[i]?.kind);
  expect(differing.length).toBeGreaterThan(0);
  for (const header of differing) {
    const i = headers.indexOf(header);
    expect({ header, own: byOwn[i], node: byNode[i] }).toStrictEqual({
      header,
      own: resetWith(ErrorCode.protocolError),
      node: answered,
    });
    expect(reasonToRefuse(header), JSON.stringify(header)).toBeDefined();
  }
});

async function judge(address: Address): Promise<StreamEnd[]> {
  using connection = await openFrames(address);
  const ends: StreamEnd[] = [];
  for (const [i, header] of headers.entries()) {
    connection.send(headersFrame(2 * i + 1, header, frameFlag.endStream));
    ends.push(await connection.readEnd(2 * i + 1));
  }
  return ends;
}
