import { expect, test } from "vitest";
import type { Parameter } from "../src/files/description.ts";
import { requestOf } from "../src/files/request.ts";

// The URLs to which the page sends requests.

interface Row {
  readonly name: string;
  /** The path template of the RPC. In the document, it has one parameter for each wildcard. */
  readonly template?: string;
  readonly path?: string;
  readonly parameters?: readonly Parameter[];
  readonly values: Readonly<Record<string, string>>;
  readonly want: string;
}

const bed: Parameter = { name: "bed", in: "path" };
const file: Parameter = { name: "file", in: "path" };

test.each<Row>([
  { name: "a slash in one segment", values: { "path bed": "a/b" }, want: "/v1/a%2Fb" },
  { name: "a space and a percent sign", values: { "path bed": "a %" }, want: "/v1/a%20%25" },
  {
    name: "slashes for the wildcard **",
    template: "/v1/{bed=**}",
    values: { "path bed": "a/b?" },
    want: "/v1/a/b%3F",
  },
  {
    name: "slashes for the wildcards * and **",
    template: "/v1/{bed=*/**}",
    path: "/v1/{bed}/{file}",
    parameters: [bed, file],
    values: { "path bed": "a/b", "path file": "c/d" },
    want: "/v1/a%2Fb/c/d",
  },
  { name: "a missing value", values: {}, want: "/v1/{bed}" },
  {
    name: "an array of two lines and a string of two lines",
    path: "/v1/beds",
    template: "/v1/beds",
    parameters: [
      { name: "tags", in: "query", schema: { type: "array" } },
      { name: "text", in: "query", schema: { type: "string" } },
    ],
    values: { "query tags": "a\nb", "query text": "c\nd" },
    want: "/v1/beds?tags=a&tags=b&text=c%0Ad",
  },
])("requestOf encodes $name as $want in the URL", (row) => {
  const { template = "/v1/{bed}", path = "/v1/{bed}", parameters = [bed], values, want } = row;
  const object = { responses: {}, parameters, "x-rpc": { procedure: "/beds.v1.Beds/Get", path: template } };
  const input = { values: new Map(Object.entries(values)), accept: undefined, body: undefined, contentType: undefined };
  expect(requestOf("http://beds.test", { id: "get", path, method: "GET", object }, input).url).toBe(
    `http://beds.test${want}`,
  );
});
