import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exchangeHttp1, type Field, shared, startKitchenSink } from "@protoport/testing";

// The table in protoport/docs/reference/rest.md of requests that google/api/http.proto does not define.

const page = readFileSync(join(import.meta.dirname, "../../../../docs/reference/rest.md"), "utf8");
const [table = ""] = /(?<=do not say how to read these requests:\n\n)(?:\|.*\n)+/.exec(page) ?? [];
const rows = table.split("\n").slice(2, -1);
const documented = rows.map((line) => line.split("|")[1]?.trim());
const gateway = shared(() => startKitchenSink());
const jsonType: Field = ["content-type", "application/json"];

// oxfmt-ignore
const testCases: readonly { readonly about: string; readonly request: string; readonly want: object }[] = [
  { about: "`//v1/query`, an empty segment", request: "GET //v1/query", want: { httpStatus: 404 } },
  { about: "`/v1/files/a//b` to `/v1/files/{path=**}`", request: "GET /v1/files/a//b",
    want: { httpStatus: 200, json: { sink: { fString: "a//b" } } } },
  { about: "`?fString=a;b`", request: "GET /v1/query?fString=a;b",
    want: { httpStatus: 200, json: { sink: { fString: "a;b" } } } },
  { about: "`?readMask=`", request: "GET /v1/shelves/1?readMask=",
    want: { httpStatus: 200, json: { name: "shelves/1", readMask: "" } } },
  { about: 'an empty body where the rule has `body: "tags"`', request: "PATCH /v1/body/tags",
    want: { httpStatus: 200, json: { sink: expect.not.objectContaining({ tags: expect.anything() }) } } },
];

test.each(testCases)('the response to "$about" is as documented', async ({ request, want }) => {
  const [httpMethod = "", path = ""] = request.split(" ");
  const body = httpMethod === "PATCH" ? { body: Buffer.of() } : {};
  const response = await exchangeHttp1(gateway.address, { httpMethod, path, header: [jsonType], ...body });
  const json: unknown = JSON.parse(response.body.toString());
  expect({ httpStatus: response.httpStatus, json }).toMatchObject(want);
});

test("every documented request has a test case", () => expect(documented).toEqual(testCases.map(({ about }) => about)));
