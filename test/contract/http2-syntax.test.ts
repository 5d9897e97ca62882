import { describe, expect, test } from "vitest";
import { openMemoryStore } from "../../src/stores/index.ts";
import { type Field, frameFlag, headersFrame, heldRows, openFrames, type StreamEnd } from "@protoport/testing";
import { authorized, startPlantServer } from "../support/server/plant-server.ts";

type TestCase = { readonly name: string; readonly header: readonly Field[]; readonly want: StreamEnd };
const deleted: StreamEnd = { kind: "responded", httpStatus: 204 };
const refused: StreamEnd = { kind: "responded", httpStatus: 400 };
// A malformed request is a PROTOCOL_ERROR stream error (RFC 9113 §8.1.1).
const malformed: StreamEnd = { kind: "reset", httpStatus: 0, errorCode: 1 };

/** Returns a valid request's header with some pseudo-header fields changed, or omitted if `undefined`. */
function header(changed: Readonly<Record<string, string | undefined>>, ...more: readonly Field[]): Field[] {
  const pseudo = { ":method": "DELETE", ":path": "/plants/7", ":scheme": "http", ":authority": "x", ...changed };
  const fields = Object.entries(pseudo).filter((field): field is [string, string] => field[1] !== undefined);
  return [...fields, authorized, ...more];
}

// One test case per kind. protoport/gateway/test/engine/http2/request-head.test.ts covers the rest.
// oxfmt-ignore
const testCases: readonly TestCase[] = [
  { name: "only valid fields", header: header({}), want: deleted },
  { name: "Host instead of :authority", header: header({ ":authority": undefined }, ["host", "x"]), want: deleted },
  { name: "Content-Length 0 and no body", header: header({}, ["content-length", "0"]), want: deleted },
  { name: "an authority with a truncated IPv6 address", header: header({ ":authority": "[::1" }), want: refused },
  { name: "a fragment in the path", header: header({ ":path": "/plants/7#x" }), want: refused },
  { name: "UTF-8 in the path", header: header({ ":path": "/plants/\xd9\xa7" }), want: refused },
  { name: "the method CONNECT", header: header({ ":method": "CONNECT", ":path": undefined, ":scheme": undefined }),
    want: refused },
  { name: "an authority with a space", header: header({ ":authority": "a b" }), want: malformed },
  { name: "a Host with a space", header: header({ ":authority": undefined }, ["host", "a b"]), want: malformed },
  { name: "no path", header: header({ ":path": undefined }), want: malformed },
  { name: "a field in upper case", header: header({}, ["X-Plant", "7"]), want: malformed },
  { name: "a Content-Length that differs from the body", header: header({}, ["content-length", "5"]), want: malformed },
];

describe("an HTTP/2 request", () => {
  // A server of node:http2 responds to CONNECT itself.
  test.each(heldRows(testCases, ["the method CONNECT"]))(
    "with $name is accepted or refused as specified",
    async ({ header: sent, want }) => {
      const plants = new Set([7n, 8n]);
      await using server = await startPlantServer({ store: openMemoryStore(plants) });
      using connection = await openFrames(server.address);
      connection.send(headersFrame(1, sent, frameFlag.endStream));
      expect(await connection.readEnd(1)).toStrictEqual(want);
      expect(plants.has(7n)).toBe(want !== deleted);
      connection.send(headersFrame(3, header({ ":path": "/plants/8" }), frameFlag.endStream));
      expect(await connection.readEnd(3)).toStrictEqual(deleted);
    },
  );
});
