import { expect } from "vitest";
import type { Field, HttpResponse, HttpRequest } from "../../../../testing/src/http/exchange.ts";
import { responseCases } from "./responses.ts";
import { bodyCases } from "./bodies.ts";
import { legacyCases } from "./legacies.ts";
import { maskCases } from "./masks.ts";
import { pathCases } from "./paths.ts";
import { queryCases } from "./queries.ts";
import type { Case, Want } from "./case.ts";
import { valueCases } from "./values.ts";

/** All test cases, grouped by file. */
export const corpusGroups: readonly { readonly name: string; readonly cases: readonly Case[] }[] = [
  { name: "paths", cases: pathCases },
  { name: "values", cases: valueCases },
  { name: "queries", cases: queryCases },
  { name: "bodies", cases: bodyCases },
  { name: "masks", cases: maskCases },
  { name: "legacies", cases: legacyCases },
  { name: "responses", cases: responseCases },
];

/** Returns a test case's request. */
export function toRequest(row: Case): HttpRequest {
  const [httpMethod = "", path = ""] = row.request.split(" ");
  const contentType = row.contentType === undefined ? row.body !== undefined && "application/json" : row.contentType;
  const header: Field[] = [...(row.header ?? [])];
  if (typeof contentType === "string") header.push(["content-type", contentType]);
  const body = typeof row.body === "string" ? new TextEncoder().encode(row.body) : row.body;
  return body === undefined ? { httpMethod, path, header } : { httpMethod, path, header, body };
}

/** Fails if a response is not the expected one. */
export function expectResponse(answer: HttpResponse, want: Want): void {
  const header = Object.fromEntries(answer.header);
  const text = answer.body.toString("utf8");
  if ("rpc" in want) {
    expect(`${answer.httpStatus} ${text}`).toMatch(/^200 /);
    expect(JSON.parse(text)).toEqual({ rpc: want.rpc, sink: want.sink });
    return;
  }
  expect(answer.httpStatus, text).toBe(want.httpStatus);
  expect(header).toMatchObject(want.header ?? {});
  if ("json" in want) {
    expect(text === "" ? undefined : JSON.parse(text)).toEqual(want.json);
    return;
  }
  expect(header["content-type"]).toBe("application/json");
  const record: unknown = JSON.parse(text);
  expect(record).toMatchObject({ code: want.code, message: expect.stringContaining(want.message) });
}

/** Returns a request in one line, for its test case's name. */
export function describeRequest({ request, body, contentType }: Case): string {
  if (body === undefined) return request;
  const type = contentType === undefined ? "" : ` as ${contentType ?? "no type"}`;
  return `${request} with ${typeof body === "string" ? body.replaceAll(/[\t\r\n]/g, " ") : "binary bytes"}${type}`;
}
