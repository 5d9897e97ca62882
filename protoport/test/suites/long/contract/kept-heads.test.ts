import { setImmediate as nextTurn } from "node:timers/promises";
import type { HandlerContext } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createBearerAuth, principalKey, type TokenVerifier } from "../../../../auth/src/index.ts";
// oxfmt-ignore
import { Dice, type Http1Connection, numRunsOf, openHttp1, startGreenhouse, type TestGreenhouse, testSeed,
  waterBedProcedure } from "@protoport/testing";

// A connection caches parts of a request head. Because callers share a proxy's connections, no cached part may reach
// another request. The tests send heads that differ in one byte on a few connections, and compare the responses with
// those on new connections.

/** How many requests there are in total. `KEPT_HEADS` sets another number. */
const requests = Number(process.env["KEPT_HEADS"] ?? numRunsOf(400));
const connections = 64;

/** The timeout per request in milliseconds, with a margin for a busy machine. */
const requestMs = 10;

// The callers' tokens differ only in the last byte, so that changing one bit can result in another caller.
const callers = new Map(["b", "c", "B"].map((end) => [`token-0123456789-${end}`, `caller ${end}`]));
const hosts = ["a.example:80", "c.example:80"];
// With HTTP/1.0, the connection closes after the response.
const versions = [...Array<string>(7).fill("HTTP/1.1"), "HTTP/1.0"];

const verifier: TokenVerifier = {
  verify: ({ text }) => {
    const subject = callers.get(text);
    if (subject === undefined) return { kind: "unknown", reason: "it is not a token of this test" };
    return { kind: "principal", subject, issuer: undefined, scopes: "all" };
  },
};

let greenhouse: TestGreenhouse;

beforeAll(async () => {
  greenhouse = await startGreenhouse(
    {
      getReading: ({ sensor }, context) => ({ sensor: `${sensor} ${requestOf(context)}` }),
      waterBed: ({ bed, liters, note }, context) => ({ bed, liters, note: `${note} ${requestOf(context)}` }),
    },
    {
      admit: createBearerAuth(verifier, { realm: "greenhouse" }).admit,
      // A connection is opened before its first request is generated, which can take long on a busy machine.
      limits: { headerTimeoutMs: 60_000 },
      // Overridden, because by default every response is kept with its connection, which is 3 GB for a million
      // requests.
      onResponse: () => {},
    },
  );
});

afterAll(() => greenhouse[Symbol.asyncDispose]());

function requestOf({ values, url, requestMethod, requestHeader }: HandlerContext): string {
  return JSON.stringify([values.get(principalKey)?.subject, requestMethod, url, [...requestHeader]]);
}

const body = `{"liters":3,"note":"x"}`;
const sized = `Content-Length: ${body.length}\r\nContent-Type: application/json\r\n`;
const kinds = [
  { line: "GET /sensors/roof/reading", more: "", body: "" },
  { line: "POST /beds/7:water", more: sized, body },
  { line: `POST ${waterBedProcedure}`, more: sized, body },
];

function generateRequest(dice: Dice): string {
  const { line, more, body: sent } = dice.oneOf(kinds);
  const token = dice.oneOf([...callers.keys()]);
  const version = dice.oneOf(versions);
  const host = dice.oneOf(hosts);
  const head = `${line} ${version}\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\nX-Note: 1\r\n${more}\r\n`;
  // Half of the requests are unchanged, so that the cache is valid about half of the time.
  return (dice.roll(2) === 0 ? head : withChangedByte(head, dice)) + sent;
}

function withChangedByte(head: string, dice: Dice): string {
  const at = dice.roll(head.length);
  const octet = head.charCodeAt(at);
  const put = dice.oneOf(["", " ", ` ${head[at]}`, String.fromCharCode(octet ^ 1), String.fromCharCode(octet ^ 0x20)]);
  return head.slice(0, at) + put + head.slice(at + 1);
}

/** Responses on new connections, by the request's bytes. */
const expectedResponses = new Map<string, string>();

/** Returns a new connection's response to a request, after which the client closes its sending side. */
async function expectedResponseTo(request: string): Promise<string> {
  const known = expectedResponses.get(request);
  if (known !== undefined) return known;
  using connection = await openHttp1(greenhouse.address);
  const response = await lastResponse(connection, request);
  expectedResponses.set(request, response);
  return response;
}

async function lastResponse(connection: Http1Connection, request: string): Promise<string> {
  connection.write(request);
  connection.socket.end();
  return withoutDate((await connection.readToEnd()).toString("latin1"));
}

async function nextResponse(connection: Http1Connection): Promise<string> {
  const { head, body: content } = await connection.readResponse();
  return withoutDate(head + content.toString("latin1"));
}

const withoutDate = (response: string): string => response.replaceAll(/^date: .*\r\n/gm, "");
const staysOpen = (response: string): boolean => !response.includes("\r\nconnection: close\r\n");
type Difference = { readonly request: string; readonly got: string; readonly want: string };

/** Sends requests one after another, sometimes pipelined or split, and returns the unexpected responses. */
async function exchangeRequests(dice: Dice, count: number): Promise<Difference[]> {
  const wrong: Difference[] = [];
  for (let sent = 0; sent < count && wrong.length === 0;) {
    using connection = await openHttp1(greenhouse.address);
    for (let isOpen = true; isOpen && sent < count;) {
      const run = Array.from({ length: 1 + dice.roll(3) }, () => generateRequest(dice));
      const wants = await Promise.all(run.map(expectedResponseTo));
      const closing = wants.findIndex((want) => !staysOpen(want));
      isOpen = closing < 0;
      const before = isOpen ? run : run.slice(0, closing);
      await writeInParts(connection, before.join(""), dice);
      const got: string[] = [];
      for (const _ of before) got.push(await nextResponse(connection));
      if (!isOpen) got.push(await lastResponse(connection, run[closing] ?? ""));
      sent += got.length;
      wrong.push(...got.flatMap((response, i) => differing(run[i] ?? "", response, wants[i] ?? "")));
    }
  }
  return wrong;
}

function differing(request: string, got: string, want: string): Difference[] {
  return got === want ? [] : [{ request, got, want }];
}

async function writeInParts(connection: Http1Connection, bytes: string, dice: Dice): Promise<void> {
  const cut = dice.roll(2) === 0 ? dice.roll(bytes.length + 1) : 0;
  connection.write(bytes.slice(0, cut));
  await nextTurn();
  connection.write(bytes.slice(cut));
}

test(
  "random requests get identical responses on shared and new connections",
  { timeout: 60_000 + requests * requestMs },
  async () => {
    const each = Math.ceil(requests / connections);
    const exchanges = Array.from({ length: connections }, (_, i) =>
      exchangeRequests(new Dice(testSeed * connections + i), each),
    );
    expect((await Promise.all(exchanges)).flat().slice(0, 3)).toEqual([]);
    const responses = [...expectedResponses.values()];
    // Ensures that each caller had accepted requests.
    for (const subject of callers.values()) expect(responses.filter((text) => text.includes(subject))).not.toEqual([]);
  },
);

test("a request with one changed byte does not get the previous response", async () => {
  const [token] = callers.keys();
  const head = `GET /sensors/roof/reading HTTP/1.1\r\nHost: ${hosts[0]}\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  const wrong = Array.from(head, async (byte, at) => {
    const other = head.slice(0, at) + String.fromCharCode(byte.charCodeAt(0) ^ 1) + head.slice(at + 1);
    using connection = await openHttp1(greenhouse.address);
    connection.write(head);
    await nextResponse(connection);
    return differing(other, await lastResponse(connection, other), await expectedResponseTo(other));
  });
  expect((await Promise.all(wrong)).flat()).toEqual([]);
});
