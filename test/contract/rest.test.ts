import { beforeEach, describe, expect, test } from "vitest";
import { openMemoryStore } from "../../src/stores/index.ts";
import { heldRows, type HttpVersion, wireFormats } from "@protoport/testing";
import { askPlantServer, authorized } from "../support/server/index.ts";
import { expectedRecord, actualResponse, type ComparedResponse } from "./expected-response.ts";
import { extraCases, pathCases, plant, toHttpRequest, type RestTestCase, type RestWant } from "./rest-table.ts";

const httpVersions: readonly HttpVersion[] = ["1.1", "2"];
// A handler compares literals of a path as sent.
const decodedLiterals: readonly string[] = ["an escaped letter of the path is decoded"];
const testCases = heldRows([...pathCases, ...extraCases], decodedLiterals).flatMap((testCase) =>
  httpVersions.map((httpVersion) => ({ ...testCase, httpVersion })),
);

const initialPlants = [0n, 1n, plant, 8n, 9n];

describe("REST", () => {
  const plants = new Set<bigint>();
  const ask = askPlantServer({ store: openMemoryStore(plants) });
  beforeEach(() => initialPlants.forEach((id) => plants.add(id)));

  test.each<RestTestCase & { httpVersion: HttpVersion }>(testCases)(
    "responds $want.httpStatus to DELETE $request.path over HTTP/$httpVersion ($name)",
    async ({ request, want, httpVersion }) => {
      const response = await ask(httpVersion, toHttpRequest(request, authorized));
      expect(actualResponse(wireFormats.rest, response)).toStrictEqual(expectedResponse(want));
      const remaining = initialPlants.filter((id) => id !== plant || want.httpStatus !== 204);
      expect(plants).toStrictEqual(new Set(remaining));
    },
  );

  test.each([
    { httpVersion: "1.1", names: ["date", "connection", "keep-alive"] },
    { httpVersion: "2", names: ["date"] },
  ] as const)(
    "a deletion over HTTP/$httpVersion gets 204 without body, Content-Type and Content-Length",
    async ({ httpVersion, names }) => {
      const { httpStatus, header, body } = await ask(httpVersion, toHttpRequest({ path: "/plants/7" }, authorized));
      const want = { httpStatus: 204, names, bytes: 0 };
      expect({ httpStatus, names: header.map(([name]) => name), bytes: body.byteLength }).toEqual(want);
    },
  );
});

function expectedResponse({ httpStatus, record }: RestWant): ComparedResponse {
  return record === undefined
    ? { httpStatus, header: {}, trailer: {}, messages: [""] }
    : expectedRecord(httpStatus, record);
}
